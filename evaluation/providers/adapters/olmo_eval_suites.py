"""Suites of olmo-eval taken as one task: what all of their tasks must share."""

from collections.abc import Mapping
from typing import Any

from evaluation.providers.adapters.contract import Refused


def parts_of(name: str) -> dict[str, list[str]]:
    """Return a suite's parts, which are tasks or suites, with the tasks of each."""
    from olmo_eval.evals.suites import get_suite, suite_exists

    if not suite_exists(name):
        return {name: [name]}
    return {
        part if isinstance(part, str) else part.name: [part]
        if isinstance(part, str)
        else list(part.expand())
        for part in get_suite(name).tasks
    }


def in_common(name: str, how: str, values: Mapping[str, Any]) -> Any:
    """Return what all tasks of a suite share; raises Refused where they do not.

    `values` has one for each task, and `how` states that they differ.
    """
    first, *others = values.values()
    if any(one != first for one in others):
        raise Refused(
            f"the tasks of {name} {how}; write instead a task for each of {', '.join(parts_of(name))}, "
            "and `groups` of them"
        )
    return first


def check_one_section(name: str, kinds: Mapping[str, str]) -> None:
    """Raise Refused for a suite of which some tasks rank choices, and others are generated.

    `kinds` has the kind of each task's requests.
    """
    sections: dict[str, list[str]] = {"tasks": [], "generation_tasks": []}
    for part, (first, *_) in parts_of(name).items():
        ranks = kinds[first] == "loglikelihood"
        sections["tasks" if ranks else "generation_tasks"].append(part)
    if all(sections.values()):
        told = (f"under `{key}` {', '.join(parts)}" for key, parts in sections.items())
        raise Refused(
            f"some tasks of {name} rank choices, others are generated; write instead {' and '.join(told)}"
        )
