"""What a user may change in configuration, suites and checkpoints: each an operation on the model.

An operation lists what it could do to a model, as plain values, and does one of these.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from tests.histories.beginning import SEEDS, answers, probe, task
from tests.histories.model import DAMAGES, HERE, Copy, Model

Choices = Callable[[Model], Iterable[tuple[Any, ...]]]
Change = Callable[..., None]

EDITS: dict[str, tuple[Choices, Change]] = {}
"""By name: the arguments that an operation could be given, and what it does with them."""


def edit(choices: Choices) -> Callable[[Change], Change]:
    def register(change: Change) -> Change:
        EDITS[change.__name__] = (choices, change)
        return change

    return register


# Stages, steps and bridges


def _other_steps(model: Model) -> Iterable[tuple[Any, ...]]:
    for stage in model.stages:
        there, now = model.on_disk(stage), model.steps(stage)
        ways: list[Any] = ["all", {"every": 10}, {"every": 5}]
        ways += [sorted({*now, step}) for step in there if step not in now]
        ways += [[step for step in now if step != left] for left in now if len(now) > 1]
        for way in ways:
            if way != model.stages[stage]["steps"] and _finds(model, stage, way):
                yield stage, way


def _finds(model: Model, stage: str, way: Any) -> bool:
    every = way["every"] if isinstance(way, dict) else 1
    return isinstance(way, list) or any(step % every == 0 for step in model.on_disk(stage))


@edit(_other_steps)
def steps(model: Model, stage: str, value: Any) -> None:
    model.stages[stage]["steps"] = value


@edit(lambda model: [(stage, 99) for stage in model.stages])
def step_not_there(model: Model, stage: str, step: int) -> None:
    model.stages[stage]["steps"] = [*model.steps(stage), step]


def _other_bridges(model: Model) -> Iterable[tuple[Any, ...]]:
    names = list(model.stages)
    for stage in names[1:]:
        ways: list[Any] = [None, {"path": f"{HERE}/ckpts/side/7"}, {"stage": names[0]}]
        ways += [{"stage": names[0], "step": step} for step in model.on_disk(names[0])]
        ways += [{"path": f"{HERE}/ckpts/one/30"}]
        for way in ways:
            if way != model.stages[stage].get("bridge"):
                yield stage, way


@edit(_other_bridges)
def bridge(model: Model, stage: str, value: Any) -> None:
    model.stages[stage]["bridge"] = value
    if value is None:
        model.stages[stage].pop("objective", None)


def _bridges_not_there(model: Model) -> Iterable[tuple[Any, ...]]:
    names = list(model.stages)
    for stage in names[1:]:
        yield stage, {"stage": names[0], "step": 77}
        yield stage, {"path": f"{HERE}/ckpts/side/8"}


@edit(_bridges_not_there)
def bridge_not_there(model: Model, stage: str, value: Any) -> None:
    model.stages[stage]["bridge"] = value


def _new_stages(model: Model) -> Iterable[tuple[Any, ...]]:
    for name in ("ablation_A", "0-shot.x"):
        if name not in model.stages and len(model.stages) < 3 and "side/7" in model.checkpoints:
            yield name, None
            yield name, {"stage": next(iter(model.stages)), "step": 20}


@edit(_new_stages)
def stage_added(model: Model, name: str, bridge: Any) -> None:
    stage = {"checkpoints": f"{HERE}/ckpts/side", "steps": "all", "suites": ["base"]}
    model.stages[name] = {**stage, "bridge": bridge} if bridge else stage


def _removable(model: Model) -> list[str]:
    named = {(stage.get("bridge") or {}).get("stage") for stage in model.stages.values()}
    return [name for name in model.stages if name not in named and len(model.stages) > 1]


@edit(lambda model: [(name,) for name in _removable(model)])
def stage_removed(model: Model, name: str) -> None:
    del model.stages[name]


def _renamings(model: Model) -> Iterable[tuple[Any, ...]]:
    fresh = [name for name in ("ablation_B", "stage2x", "pre") if name not in model.stages]
    return [(old, fresh[0]) for old in model.stages if fresh and old != fresh[0]]


@edit(_renamings)
def stage_renamed(model: Model, old: str, new: str) -> None:
    model.config["stages"] = {
        new if name == old else name: stage for name, stage in model.stages.items()
    }
    for stage in model.stages.values():
        if (stage.get("bridge") or {}).get("stage") == old:
            stage["bridge"] = {**stage["bridge"], "stage": new}


# Settings


@edit(lambda model: [(d,) for d in ("float32", "bfloat16") if d != _dtype(model)])
def dtype(model: Model, value: str) -> None:
    model.config["scoring"] = {"dtype": value}


def _dtype(model: Model) -> str:
    return str(model.config["scoring"]["dtype"])


@edit(lambda model: [(f"{HERE}/{n}",) for n in ("results", "results_b") if n not in _root(model)])
def results_elsewhere(model: Model, place: str) -> None:
    model.config["results"] = place


def _root(model: Model) -> list[str]:
    return [str(model.config["results"]).rpartition("/")[2]]


@edit(lambda model: [(stage, not own.get("results")) for stage, own in model.stages.items()])
def stage_results_elsewhere(model: Model, stage: str, is_elsewhere: bool) -> None:
    if is_elsewhere:
        model.stages[stage]["results"] = f"{HERE}/elsewhere/{stage}"
    else:
        del model.stages[stage]["results"]


@edit(
    lambda model: [
        (stage, names)
        for stage, own in model.stages.items()
        for names in (["base"], ["base", "more"], ["base", "sft"], ["more", "base", "sft"])
        if names != own["suites"] and not ("sft" in own["suites"] and "sft" not in names)
    ]
)
def suites(model: Model, stage: str, names: list[str]) -> None:
    model.stages[stage]["suites"] = names


@edit(
    lambda model: [
        (stage, number, margin)
        for stage, own in model.stages.items()
        for number in range(len(own.get("objective", [])))
        for margin in (0.01, 0.2, 0.5)
        if margin != own["objective"][number]["margin"]
    ]
)
def margin(model: Model, stage: str, number: int, value: float) -> None:
    model.stages[stage]["objective"][number]["margin"] = value


@edit(lambda model: [(s, t) for s in _bridged(model) for t in _tiers(model, s)])
def objective(model: Model, stage: str, tier: str) -> None:
    aims = model.stages[stage].setdefault("objective", [])
    if len(aims) < 3:
        aims.append({"tier": tier, "want": "improve", "margin": 0.0})
    else:
        aims.pop(0)


def _tiers(model: Model, stage: str) -> list[str]:
    return ["tier2", "tier3", *(["tier5"] if model.suite(stage)["generation_tasks"] else [])]


def _bridged(model: Model) -> list[str]:
    return [name for name, stage in model.stages.items() if stage.get("bridge")]


# Suites


def _items(model: Model, section: str) -> Iterable[tuple[str, str, dict[str, Any]]]:
    for suite, content in model.suites.items():
        for name, item in content.get(section, {}).items():
            yield suite, name, item


def values(section: str, key: str, *values: Any) -> Choices:
    """An item of this section given another value of one key; None takes the key away."""

    def choices(model: Model) -> Iterable[tuple[Any, ...]]:
        return [
            (suite, name, value)
            for suite, name, item in _items(model, section)
            for value in values
            if item.get(key) != value
        ]

    return choices


def put(model: Model, section: str, key: str, where: tuple[str, str], value: Any) -> None:
    item = model.suites[where[0]][section][where[1]]
    if value is None:
        item.pop(key, None)
    else:
        item[key] = value


@edit(values("slices", "text", None, "{{ text }} the end"))
def slice_text(model: Model, suite: str, name: str, value: Any) -> None:
    put(model, "slices", "text", (suite, name), value)


@edit(values("slices", "tokens", 320, 480, 640))
def slice_tokens(model: Model, suite: str, name: str, value: Any) -> None:
    put(model, "slices", "tokens", (suite, name), value)


@edit(values("slices", "group", None, "hq", "web"))
def slice_group(model: Model, suite: str, name: str, value: Any) -> None:
    put(model, "slices", "group", (suite, name), value)


QUESTION = "Question: {{ question }}\nAnswer:"


@edit(values("tasks", "context", QUESTION, "{{ question }} So"))
def task_context(model: Model, suite: str, name: str, value: Any) -> None:
    put(model, "tasks", "context", (suite, name), value)


@edit(values("tasks", "limit", None, 8, 12))
def task_limit(model: Model, suite: str, name: str, value: Any) -> None:
    put(model, "tasks", "limit", (suite, name), value)


@edit(values("tasks", "group", None, "hard", "easy"))
def task_group(model: Model, suite: str, name: str, value: Any) -> None:
    put(model, "tasks", "group", (suite, name), value)


@edit(values("tasks", "primary", None, "per_char", "per_token"))
def task_primary(model: Model, suite: str, name: str, value: Any) -> None:
    put(model, "tasks", "primary", (suite, name), value)


@edit(values("probes", "max_new_tokens", 4, 6))
def probe_length(model: Model, suite: str, name: str, value: Any) -> None:
    put(model, "probes", "max_new_tokens", (suite, name), value)


@edit(values("probes", "category", "concise", "polite"))
def probe_category(model: Model, suite: str, name: str, value: Any) -> None:
    put(model, "probes", "category", (suite, name), value)


CLEAN = {"check": "no_chat_artifacts"}
SHORT = {"check": "word_count", "at_most": 2}
UPPER = {"check": "letter_case", "case": "upper"}


@edit(values("probes", "checks", [CLEAN], [CLEAN, SHORT], [UPPER]))
def probe_checks(model: Model, suite: str, name: str, value: Any) -> None:
    put(model, "probes", "checks", (suite, name), value)


@edit(values("probes", "messages", *(probe(text)["messages"] for text in ("A cat?", "A tree?"))))
def probe_prompt(model: Model, suite: str, name: str, value: Any) -> None:
    put(model, "probes", "messages", (suite, name), value)


NEW = {
    "slices": {"short": {"dataset": "made/text", "tokens": 160, "skip_documents": 4}},
    "tasks": {"puzzle": {**task("riddles"), "continuation": " {{ choice }}."}},
    "probes": {"river": probe("A river?")},
    "generation_tasks": {"pairs": {**answers(None), "prompt": "{{ answers[2] }}"}},
}


def _new_items(model: Model) -> Iterable[tuple[Any, ...]]:
    for section, items in NEW.items():
        suite = "sft" if section in ("probes", "generation_tasks") else "base"
        for name in items:
            if name not in model.suites[suite].get(section, {}):
                yield suite, section, name


@edit(_new_items)
def item_added(model: Model, suite: str, section: str, name: str) -> None:
    model.suites[suite].setdefault(section, {})[name] = dict(NEW[section][name])


def _old_items(model: Model) -> Iterable[tuple[Any, ...]]:
    for section in NEW:
        for suite, name, _ in _items(model, section):
            if len(model.suites[suite][section]) > 1:
                yield suite, section, name


@edit(_old_items)
def item_removed(model: Model, suite: str, section: str, name: str) -> None:
    """An aim at nothing is no wish, so no tier of a suite is emptied."""
    del model.suites[suite][section][name]


# Checkpoints


def _now(model: Model) -> int:
    model.clock += 1
    return model.clock


@edit(
    lambda model: [
        (place, seed, keeps_times)
        for place, known in model.checkpoints.items()
        for seed in range(SEEDS)
        if seed != known.seed
        for keeps_times in (True, False)
    ]
)
def checkpoint_replaced(model: Model, place: str, seed: int, keeps_times: bool) -> None:
    model.gone.pop(place, None)
    model.checkpoints[place] = Copy(seed, 0 if keeps_times else _now(model))


@edit(lambda model: [(p,) for p, known in model.checkpoints.items() if known.damage is None])
def checkpoint_touched(model: Model, place: str) -> None:
    """Copied again by `cp -r`: the same weights at another time."""
    model.checkpoints[place] = replace(model.checkpoints[place], written=_now(model))


@edit(
    lambda model: [
        (place, seed, keeps_times)
        for place in ("one/40", "two/25", "two/20", "side/14", *model.gone)
        if place not in model.checkpoints
        for seed in (0, 5)
        for keeps_times in (True, False)
    ]
)
def checkpoint_added(model: Model, place: str, seed: int, keeps_times: bool) -> None:
    model.gone.pop(place, None)
    model.checkpoints[place] = Copy(seed, 0 if keeps_times else _now(model))


@edit(lambda model: [(place,) for place in model.checkpoints if _others(model, place)])
def checkpoint_deleted(model: Model, place: str) -> None:
    model.gone[place] = model.checkpoints.pop(place)


@edit(
    lambda model: [
        (place, damage)
        for place, known in model.checkpoints.items()
        for damage in DAMAGES
        if known.damage != damage and _others(model, place)
    ]
)
def checkpoint_damaged(model: Model, place: str, damage: str) -> None:
    known = model.checkpoints[place]
    written = known.written if damage == "lost_shard" else _now(model)
    if damage == "no_config":  # what is left is no checkpoint
        model.gone.setdefault(place, known)
    else:
        model.gone.pop(place, None)
    model.checkpoints[place] = Copy(known.seed, written, damage)


@edit(lambda model: [(p,) for p, known in model.checkpoints.items() if known.damage])
def checkpoint_restored(model: Model, place: str) -> None:
    """From a copy that kept its times."""
    model.gone.pop(place, None)
    model.checkpoints[place] = Copy(model.checkpoints[place].seed)


def _others(model: Model, place: str) -> bool:
    """Whether every stage that finds its steps there would still find one without this."""
    less = model.copy()
    del less.checkpoints[place]
    return all(less.steps(stage) or not model.steps(stage) for stage in model.stages)


# The program itself


PROTOCOLS = (
    *("tier2", "tier3", "tier4", "tier5", "BRIDGE", "REPORT"),
    *("PREFILL_TOKENIZER", "PREFILL_SLICE", "PREFILL_TASK", "PREFILL_PROBES"),
    *("PREFILL_GENERATION", "RESULTS"),
)


@edit(lambda model: [(name,) for name in PROTOCOLS])
def protocol_raised(model: Model, name: str) -> None:
    number = int(model.protocols.get(name, "raised-1").rpartition("-")[2]) + 1
    model.protocols[name] = f"raised-{number}"
