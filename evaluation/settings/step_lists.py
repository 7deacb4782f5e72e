"""Steps as a configuration writes them: a list, `all` or `every: N`."""

import re
from collections import Counter
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from evaluation.settings.model import LARGEST_COUNT, Integer, Settings, Step


class Every(Settings):
    """Every step on disk that is a multiple of `every`."""

    every: Integer = Field(
        gt=0, le=LARGEST_COUNT, description="Steps on disk that are multiples of this."
    )


def _read_steps(value: Any) -> Any:
    """Read one of the three spellings, or raise ValueError; leave what is read already as it is."""
    if isinstance(value, Every) or value == "all":
        return value
    if isinstance(value, list | tuple):
        return _read_list(value)
    written = re.fullmatch(r"\s*every\s*:\s*(\d+)\s*", value) if isinstance(value, str) else None
    every = int(written[1]) if written else value.get("every") if isinstance(value, dict) else None
    if every is None or (isinstance(value, dict) and len(value) > 1):
        listed = f"[{value}]" if _is_step(value) else "[1000, 2000]"
        raise ValueError(f"{value!r} is no list of steps; write `{listed}`, `all` or `every: 500`")
    if not _is_step(every) or every == 0:
        raise ValueError(f"every: {every!r} is no whole number from 1 on")
    return Every(every=every)


def _read_list(steps: list[Any] | tuple[Any, ...]) -> tuple[int, ...]:
    wrong = next((step for step in steps if not _is_step(step)), None)
    if wrong is not None or None in steps:
        raise ValueError(f"{wrong!r} is no step; steps are whole numbers from 0 on")
    twice = next((step for step, times in Counter(steps).items() if times > 1), None)
    if twice is not None:
        raise ValueError(f"{twice} stands there twice; steps must be distinct")
    if not steps:
        raise ValueError("no steps; list at least one, or write `all` or `every: 500`")
    return tuple(steps)


def _is_step(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


Steps = Annotated[
    tuple[Step, ...] | Literal["all"] | Every,
    BeforeValidator(_read_steps),
]


def is_requested(step: int, steps: Steps) -> bool:
    """Return whether a step on disk is one of the list, or of those that `all` or `every: N` means."""
    if isinstance(steps, tuple):
        return step in steps
    return step % (steps.every if isinstance(steps, Every) else 1) == 0
