"""How an adapter refuses a task."""

from collections.abc import Iterable
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
