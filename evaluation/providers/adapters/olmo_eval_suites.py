"""Suites of olmo-eval taken as one task: what all of their tasks must share."""

from collections.abc import Mapping
from typing import Any

from evaluation.providers.adapters.contract import Line, Refused


def in_common(request: Line, how: str, values: Mapping[str, Any]) -> Any:
    """Return what all tasks of a suite share.

    Args:
        request: What request.json holds.
        how: States that they differ, behind "the tasks".
        values: The value of each task, by name.

    Returns:
        The shared value.

    Raises:
        Refused: They differ.
    """
    first, *others = values.values()
    if any(one != first for one in others):
        name = request["task"]
        raise Refused(f"the tasks of {name} {how}; {_instead(name, expands=request['expands'])}")
    return first


def _instead(name: str, *, expands: bool) -> str:
    from olmo_eval.evals.suites import get_suite

    if expands:
        return f'write instead `olmo_eval_suites: ["{name}"]`, outside of all sections'
    parts = (part if isinstance(part, str) else part.name for part in get_suite(name).tasks)
    return f"write instead a task for each of {', '.join(parts)}, and `groups` of them"
