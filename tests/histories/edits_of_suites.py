"""What a user may change in suites: items, keys, tasks whose answers are generated, and the order of it all."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tests.histories.beginning import LETS, SAMPLED, STRATA, answers, probe, task
from tests.histories.model import SECTIONS, Model
from tests.histories.registry import EDITS, Edit, edit, items, put, putting, values
from tests.workflow.world import FIRST_LETTER, LAST_LETTER

putting("slices", "text", None, "{{ text }} the end", name="slice_text")
putting("slices", "tokens", 320, 480, 640, name="slice_tokens")
putting("slices", "group", None, "hq", "web", name="slice_group")
putting("slices", "skip_documents", None, 2, name="slice_skipped")

QUESTION = "Question: {{ question }}\nAnswer:"
putting("tasks", "context", QUESTION, "{{ question }} So", name="task_context")
putting("tasks", "continuation", None, " {{ choice }}!", name="task_continuation")
putting("tasks", "let", None, *LETS, name="task_let")
putting("tasks", "gold", "label", "(label + 1) % 3", name="task_gold")
putting("tasks", "cluster", None, "{{ question[:3] }}", name="task_cluster")
putting("tasks", "stratum", None, "{{ label }}", name="task_stratum")
putting("tasks", "unconditional_context", None, "Answer:", name="task_unconditional")
putting("tasks", "limit", None, 4, 8, 12, name="task_limit")
putting("tasks", "group", None, "hard", "easy", name="task_group")
putting("tasks", "primary", None, "per_char", "per_token", name="task_primary")

CLEAN = {"check": "no_chat_artifacts"}
SHORT = {"check": "word_count", "at_most": 2}
UPPER = {"check": "letter_case", "case": "upper"}
PROMPTS = tuple(probe(text)["messages"] for text in ("A cat?", "A tree?"))
putting("probes", "max_new_tokens", 4, 6, name="probe_length")
putting("probes", "category", "concise", "polite", name="probe_category")
putting("probes", "checks", [CLEAN], [CLEAN, SHORT], [UPPER], name="probe_checks")
putting("probes", "messages", *PROMPTS, name="probe_prompt")

SUITE_KEYS: dict[str, tuple[Any, ...]] = {
    "attention": (None, "document"),
    "stop": (None, ["e"]),
    "chat_template": (None, "{% for m in messages %}<{{ m['content'] }}>{% endfor %}"),
}
"""None is for what a suite does not say."""


@edit(
    lambda model: [
        (suite, key, value)
        for suite, key in (("base", "attention"), ("sft", "stop"), ("sft", "chat_template"))
        for value in SUITE_KEYS[key]
        if model.suites[suite].get(key) != value
    ]
)
def suite_key(model: Model, suite: str, key: str, value: Any) -> None:
    model.suites[suite].pop(key, None)
    if value is not None:
        model.suites[suite][key] = value


NEW = {
    "slices": {"short": {"dataset": "made/text", "tokens": 160, "skip_documents": 4}},
    "tasks": {"puzzle": {**task("riddles"), "continuation": " {{ choice }}."}},
    "probes": {"river": probe("A river?")},
    "generation_tasks": {"pairs": {**answers(None), "prompt": "{{ answers[2] }}"}},
}


def _new_items(model: Model) -> Iterable[tuple[Any, ...]]:
    for section, new in NEW.items():
        suite = "sft" if section in ("probes", "generation_tasks") else "base"
        for name in new:
            if name not in model.suites[suite].get(section, {}):
                yield suite, section, name


@edit(_new_items)
def item_added(model: Model, suite: str, section: str, name: str) -> None:
    model.suites[suite].setdefault(section, {})[name] = dict(NEW[section][name])


def _old_items(model: Model) -> Iterable[tuple[Any, ...]]:
    for section in NEW:
        for suite, name, _ in items(model, section):
            if len(model.suites[suite][section]) > 1 and not _is_changed(model, section, name):
                yield suite, section, name


@edit(_old_items)
def item_removed(model: Model, suite: str, section: str, name: str) -> None:
    """An objective without items is an error, so no tier of a suite is emptied."""
    del model.suites[suite][section][name]


def _is_changed(model: Model, section: str, name: str) -> bool:
    """Whether a suite that extends another overrides this item."""
    return any(name in own.get("overrides", {}).get(section, {}) for own in model.suites.values())


def _renamings(model: Model) -> Iterable[tuple[Any, ...]]:
    for section in NEW:
        names = [name for _, name, _ in items(model, section)]
        for suite, name, _ in items(model, section):
            new = name.removesuffix("_x") if name.endswith("_x") else f"{name}_x"
            if new not in names and not _is_changed(model, section, name):
                yield suite, section, name, new


@edit(_renamings)
def item_renamed(model: Model, suite: str, section: str, old: str, new: str) -> None:
    own = model.suites[suite][section]
    model.suites[suite][section] = {new if n == old else n: item for n, item in own.items()}


def _copies(model: Model) -> Iterable[tuple[Any, ...]]:
    for section in ("slices", "tasks", "generation_tasks"):
        names = [name for _, name, _ in items(model, section)]
        for suite, name, _ in items(model, section):
            if f"{name}_again" not in names and len(names) < 4 and not name.endswith("_again"):
                yield suite, section, name


@edit(_copies)
def item_copied(model: Model, suite: str, section: str, name: str) -> None:
    """The same questions under a second name."""
    own = model.suites[suite][section]
    own[f"{name}_again"] = dict(own[name])


@edit(lambda model: [(group,) for group in ("easy", "hard", None)])
def overridden_group(model: Model, group: str | None) -> None:
    tasks = model.suites["child"]["overrides"]["tasks"]
    for keys in tasks.values():
        keys["group"] = group or "none"


ANSWERED = "generation_tasks"
ASKED = ("{{ answers[1] }}?", "{{ answers[0] }}, {{ answers[1] }}:")
STOPS = (None, ["e"], ["e", "o"], [*"abcdefghijklmnopqrstuvwxyz"])
SAMPLINGS = (
    *(None, SAMPLED, {**SAMPLED, "n": 4}, {**SAMPLED, "seed": 2}),
    {**SAMPLED, "temperature": 0.5},
)
VERIFIERS: tuple[dict[str, Any], ...] = (
    {"lenient": LAST_LETTER},
    {"loose": LAST_LETTER},
    {"strict": FIRST_LETTER, "lenient": LAST_LETTER},
    {"strict": {**FIRST_LETTER, "ignore_case": True}, "lenient": LAST_LETTER},
)

putting(ANSWERED, "prompt", *ASKED, name="answers_prompt")
putting(ANSWERED, "stop", *STOPS, name="answers_stop")
putting(ANSWERED, "sampling", *SAMPLINGS, name="answers_sampling")
putting(ANSWERED, "max_new_tokens", 3, 6, name="answers_length")
putting(ANSWERED, "limit", None, 4, 6, name="answers_limit")
putting(ANSWERED, "document", {"gold": "'a'"}, {"gold": "'b'"}, name="answers_document")
putting(ANSWERED, "answer_after", None, " ", "e", name="answers_after")
putting(ANSWERED, "strata", None, {"label": "{{ label }}"}, STRATA, name="answers_strata")


@edit(values(ANSWERED, "verifiers", *VERIFIERS), about="answers")
def answers_verifiers(model: Model, suite: str, name: str, value: Any) -> None:
    put(model, ANSWERED, "primary", (suite, name), None)
    put(model, ANSWERED, "verifiers", (suite, name), value)


def _primaries(model: Model) -> list[tuple[Any, ...]]:
    possible = values(ANSWERED, "primary", None, "lenient")(model)
    return [
        (suite, name, value)
        for suite, name, value in possible
        if value is None or value in model.suites[suite][ANSWERED][name]["verifiers"]
    ]


@edit(_primaries, about="answers")
def answers_primary(model: Model, suite: str, name: str, value: Any) -> None:
    put(model, ANSWERED, "primary", (suite, name), value)


Path = list[Any]


def _at(model: Model, path: Path) -> Any:
    found: Any = {"config": model.config, "suites": model.suites}
    for key in path:
        found = found[key]
    return found


def _swapped(found: Any, number: int) -> Any:
    """A list or mapping in which an entry and the one behind it have changed places."""
    entries = list(found.items()) if isinstance(found, dict) else list(found)
    entries[number : number + 2] = entries[number : number + 2][::-1]
    return dict(entries) if isinstance(found, dict) else entries


def _change(model: Model, path: Path, number: int) -> None:
    _at(model, path[:-1])[path[-1]] = _swapped(_at(model, path), number)


def _order_of(name: str, places: Callable[[Model], Iterable[Path]]) -> None:
    """Registers an edit of the order in what lies at these places."""

    def choices(model: Model) -> Iterator[tuple[Any, ...]]:
        for path in places(model):
            for number in range(len(_at(model, path)) - 1):
                yield path, number

    EDITS[f"order_of_{name}"] = Edit(choices, _change, "order")


def _key_of(sections: Iterable[str], key: str) -> Callable[[Model], Iterator[Path]]:
    def places(model: Model) -> Iterator[Path]:
        for section in sections:
            for suite, name, item in items(model, section):
                if len(item.get(key, ())) > 1:
                    yield ["suites", suite, section, name, key]

    return places


def _sections(model: Model) -> Iterator[Path]:
    for suite, content in model.suites.items():
        for section in SECTIONS:
            if section in content:
                yield ["suites", suite, section]


def _items(model: Model) -> Iterator[Path]:
    for section in SECTIONS:
        for suite, name, _ in items(model, section):
            yield ["suites", suite, section, name]


def _of_stages(key: str) -> Callable[[Model], Iterator[Path]]:
    def places(model: Model) -> Iterator[Path]:
        for stage, own in model.stages.items():
            if isinstance(own.get(key), list):
                yield ["config", "stages", stage, key]

    return places


_order_of("let", _key_of(("tasks", "generation_tasks"), "let"))
_order_of("verifiers", _key_of(("generation_tasks",), "verifiers"))
_order_of("strata", _key_of(("generation_tasks",), "strata"))
_order_of("checks", _key_of(("probes",), "checks"))
_order_of("items", _sections)
_order_of("keys", _items)
_order_of("sections", lambda model: [["suites", suite] for suite in model.suites])
_order_of("stages", lambda _: [["config", "stages"]])
_order_of("settings", lambda _: [["config", "verification"], ["config", "mirrors"]])
_order_of("suites", _of_stages("suites"))
_order_of("objectives", _of_stages("objective"))
_order_of("steps", _of_stages("steps"))
