"""OlmoBaseEval's suites and RULER's by name: their tasks, and groups that weigh them as olmo-eval does.

Inside another suite, olmo-eval counts a suite by the plain mean of its tasks, even if the suite by
itself is a mean of means; such a group is called `(flat)` here. A suite with several kinds of tasks has
a group for each kind. If all kinds are fractions for which higher is better (accuracies, greedy rates,
pass rates), one more group has olmo-eval's own mean over all tasks.
"""

import re
from collections.abc import Iterable
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from evaluation.settings.provided import ProviderChoices
from evaluation.settings.yaml_files import read_yaml
from evaluation.wording import did_you_mean

_GENERATED = re.compile(
    r".*:gen:.*|(gsm|humaneval|ruler_|deepseek_leetcode|mbpp:olmo3base|minerva_math_\w+:olmo3base).*"
)
"""Tasks whose answers are generated; other tasks rank answers, or score only the right one."""

_NOT_SHIPPED = re.compile(r"(bigcodebench|ds1000|multipl_e_).*")
"""Tasks whose programs need a language other than Python, or packages beyond its library."""

_TAKEN = ("humaneval", "mbpp")
"""Names that tasks of this project's own suites have, whose prompts differ."""

_SECTIONS = {"ranked": "tasks", "gold": "tasks", "generated": "generation_tasks"}

Sections = dict[str, dict[str, Any]]
"""`tasks`, `generation_tasks` and `groups` of a suite, as they stand in YAML."""


def is_suite(name: str) -> bool:
    """Return whether olmo-eval's suite of this name is expanded here: of OlmoBaseEval or RULER."""
    return name in _names()


def expand_suites(names: Iterable[str]) -> Sections:
    """Return the tasks of suites, each once, and groups that weigh them as olmo-eval does.

    Raises:
        ValueError: A name is not a suite of OlmoBaseEval or RULER.
    """
    sections: Sections = {"tasks": {}, "generation_tasks": {}, "groups": {}}
    for name in names:
        if not is_suite(name):
            hint = did_you_mean(name, _names())
            raise ValueError(
                f"olmo_eval_suites: {name!r} is not a suite of OlmoBaseEval or RULER{hint}; correct it"
            )
        for task in filter(_is_shipped, _tasks(name)):
            asked = {"provider": "olmo_eval", "task": task}
            provider_choices = ProviderChoices(**asked)
            bits = {"kind": "gold"} if provider_choices.decided_as != provider_choices.kind else {}
            sections[_SECTIONS[_kind(task)]][_short(task)] = {**asked, **bits}
        sections["groups"] |= _groups(name)
    return sections


def _groups(name: str) -> dict[str, Any]:
    """Return a suite's groups: those inside it, then one for each kind that several tasks have."""
    tasks = _shipped(name)
    several = [kind for kind, of_kind in tasks.items() if len(of_kind) > 1 or len(tasks) == 1]
    label = name if all(map(_is_shipped, _tasks(name))) else f"{name} (Python)"
    groups: dict[str, Any] = {}
    for kind in several:
        members = list(chain(*(_member(part, kind, groups) for part in suite_parts(name))))
        own = label if len(several) == 1 else f"{label} ({kind})"
        groups[own] = {"tier": _tier(kind), "members": members}
    if len({*map(_tier, several)}) > 1:
        groups |= _over_tiers(name, label, groups)
    return groups


def _over_tiers(name: str, label: str, groups: dict[str, Any]) -> dict[str, Any]:
    """Return the group of all of a suite's tasks; nothing where a part has tasks of two kinds.

    Its tasks without choices are counted by their greedy rates, so none may measure bits per byte.
    """
    parts = [(part, [*_shipped(part)]) for part in suite_parts(name)]
    gold = _shipped(name).get("gold", [])
    if any(len(kinds) > 1 for _, kinds in parts) or any("bpb" in task for task in gold):
        return {}
    members = chain(*(_member(part, kind, groups) for part, kinds in parts for kind in kinds))
    about = {"tier": "tier5", "also": ["tier3"], "members": list(members)}
    return {label: {**about, "greedy": list(map(_short, gold))}}


def _member(part: str, kind: str, groups: dict[str, Any]) -> list[str]:
    """Return a part's names as members; nothing where it has no tasks of this kind."""
    members = list(map(_short, _shipped(part).get(kind, [])))
    if not members or not is_suite(part):
        return members
    label = f"{part} (flat)" if any(map(is_suite, suite_parts(part))) else part
    groups[label] = {"tier": _tier(kind), "members": members}
    return [label]


def _tier(kind: str) -> str:
    return "tier5" if kind == "generated" else "tier3"


def _kind(task: str) -> str:
    if _GENERATED.fullmatch(task):
        return "generated"
    return ProviderChoices(provider="olmo_eval", task=task).decided_as


def _is_shipped(task: str) -> bool:
    return not _NOT_SHIPPED.fullmatch(task)


def _short(task: str) -> str:
    """Return a task's name in this project: without `olmo3base`, unless that name is taken."""
    short = task.replace(":rc:bpb", ":bpb").replace("mc_olmo3base", "mc")
    short = short.removesuffix(":olmo3base").replace(":", "_")
    return task.replace(":", "_") if short in _TAKEN else short


def _tasks(name: str) -> list[str]:
    if not is_suite(name):
        return [name]
    return list(dict.fromkeys(chain(*map(_tasks, suite_parts(name)))))


def _shipped(name: str) -> dict[str, list[str]]:
    """Return the tasks of a suite (or one task) by kind, without those not shipped."""
    tasks = [(_kind(task), task) for task in filter(_is_shipped, _tasks(name))]
    found = {kind: [task for its, task in tasks if its == kind] for kind in _SECTIONS}
    return {kind: own for kind, own in found.items() if own}


@cache
def _names() -> dict[str, str]:
    """Return the text of each suite by name, with `*` replaced in both."""
    table = read_yaml(Path(__file__).with_suffix(".yaml"))
    names: dict[str, str] = {}
    for name, text in table["suites"].items():
        for end in table["endings"] if "*" in name else ("",):
            names.setdefault(name.replace("*", end), text.replace("*", end))
    return names


@cache
def suite_parts(name: str) -> list[str]:
    """Return the tasks and suites of a suite in olmo-eval's order; one marked by `=` is its parts."""
    parts: list[str] = []
    for word in re.findall(r"(?:\{[^}]*\}|[^\s{])+", _names()[name]):
        before, _, rest = word.partition("{")
        inner, _, after = rest.partition("}")
        words = (
            [f"{before}{choice.strip()}{after}" for choice in inner.split(",")] if rest else [word]
        )
        for part in words:
            parts += suite_parts(part[1:]) if part.startswith("=") else [part]
    return parts
