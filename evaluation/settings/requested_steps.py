"""Which steps a configuration requests: a list, `all` or `every: N`; and the last of them."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BeforeValidator, Field

from evaluation.settings.model import Count, Settings, Step

FEWEST, MOST = 3, 5
"""Fewest and most last checkpoints from which their noise is estimated: the last half of them."""

Checkpoint = TypeVar("Checkpoint")


def last_ones(checkpoints: Sequence[Checkpoint]) -> Sequence[Checkpoint]:
    """Return the last checkpoints of all, or what belongs to them, from which their noise is estimated."""
    return checkpoints[-max(FEWEST, min(MOST, len(checkpoints) // 2)) :]


class StepInterval(Settings):
    """Every step on disk that is a multiple of `every`."""

    every: Count = Field(description="Steps on disk that are multiples of this.")


def _read_steps(value: Any) -> Any:
    """Read one of the three forms, or raise ValueError; return a value that was already read."""
    if isinstance(value, StepInterval) or value == "all":
        return value
    if isinstance(value, list | tuple):
        return _read_list(value)
    written = re.fullmatch(r"\s*every\s*:\s*(\d+)\s*", value) if isinstance(value, str) else None
    every = int(written[1]) if written else value.get("every") if isinstance(value, dict) else None
    if every is None or (isinstance(value, dict) and len(value) > 1):
        listed = f"[{value}]" if _is_step(value) else "[1000, 2000]"
        raise ValueError(
            f"{value!r} is not a list of steps; write `{listed}`, `all` or `{{every: 500}}`"
        )
    if not _is_step(every) or every == 0:
        raise ValueError(f"every: {every!r} is not a whole number from 1 on")
    return StepInterval(every=every)


def _read_list(steps: list[Any] | tuple[Any, ...]) -> tuple[int, ...]:
    wrong = next((step for step in steps if not _is_step(step)), None)
    if wrong is not None or None in steps:
        raise ValueError(f"{wrong!r} is not a step; steps are whole numbers from 0 on")
    twice = next((step for step, times in Counter(steps).items() if times > 1), None)
    if twice is not None:
        raise ValueError(f"{twice} appears twice; steps must be distinct")
    if not steps:
        raise ValueError("no steps; list at least one, or write `all` or `{every: 500}`")
    return tuple(steps)


def _is_step(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


Steps = Annotated[tuple[Step, ...] | Literal["all"] | StepInterval, BeforeValidator(_read_steps)]


def is_requested(step: int, steps: Steps) -> bool:
    """Return whether a stage's key `steps` requests a step that is on disk."""
    if isinstance(steps, tuple):
        return step in steps
    return step % (steps.every if isinstance(steps, StepInterval) else 1) == 0
