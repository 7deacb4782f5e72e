"""What a user may change in suites but for tasks whose answers are generated."""

from collections.abc import Iterable
from typing import Any

from tests.histories.beginning import LETS, answers, probe, task
from tests.histories.model import Model
from tests.histories.registry import edit, items, putting

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
    """An aim at nothing is no wish, so no tier of a suite is emptied."""
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
