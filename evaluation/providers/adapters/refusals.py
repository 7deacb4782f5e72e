"""How an adapter refuses a task."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches


class RefusedTask(Exception):
    """The task cannot be used; the text is a sentence for the user."""


def not_supported(name: str, why: str) -> RefusedTask:
    """Build the refusal of a task; `why` is the reason, the words after "as"."""
    return RefusedTask(f"{name} is not supported, as {why}")


def no_such_task(name: str, known: Iterable[str]) -> RefusedTask:
    """Build the refusal of a name that a provider lacks, with the names most like it."""
    near = get_close_matches(name, list(known), n=3)
    hint = f"; did you mean {', '.join(near)}?" if near else ""
    return RefusedTask(f"it has no task {name!r}{hint}")


def check_section(name: str, kind: str, *, ranks: bool) -> None:
    """Raise RefusedTask for a task of the other section of a suite than it was requested under."""
    if ranks != (kind == "choices"):
        what = (
            "choices; put it under `tasks`"
            if ranks
            else "no choices; put it under `generation_tasks`"
        )
        raise RefusedTask(f"{name} ranks {what}")


def common_stop(stops: Mapping[str, list[str]]) -> list[str]:
    """Return the stop strings that all parts of a task share; raise RefusedTask if they differ."""
    first, *others = stops.values()
    if any(other != first for other in others):
        raise RefusedTask("its parts have different stop strings; name each part as a task")
    return first
