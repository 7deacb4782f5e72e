"""Measure how long a GPU was busy: the time of forward passes, by its own clock.

Events mark the beginning and the end of a pass in the GPU's queue. The CPU waits for them only when the
sum is requested. Time on a CPU is not measured, as it has no such clock.
"""

import functools
from collections import deque
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import torch

P = ParamSpec("P")
T = TypeVar("T")

_MOST = 256
"""Number of stored passes above which finished ones are added up."""

_ended = 0.0
"""Seconds of the passes that have been added up."""

_passes: deque[tuple[torch.cuda.Event, torch.cuda.Event]] = deque()


def busy_seconds() -> float:
    """Wait for the GPU's queue; return the seconds that it spent on this process's passes, 0 on a CPU."""
    try:
        while _passes:
            _passes[0][1].synchronize()
            _add_first()
    except RuntimeError:  # from a dead GPU, which the next computation reports
        _passes.clear()
    return _ended


def working(method: Callable[P, T]) -> Callable[P, T]:
    """Count a method's calls, which must not be nested, as work of the GPU."""

    @functools.wraps(method)
    def counted(*arguments: P.args, **keywords: P.kwargs) -> T:
        if not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
            return method(*arguments, **keywords)
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        begin.record()
        result = method(*arguments, **keywords)
        end.record()
        _passes.append((begin, end))
        while len(_passes) > _MOST and _passes[0][1].query():  # type: ignore[no-untyped-call]
            _add_first()
        return result

    return counted


def _add_first() -> None:
    global _ended
    begin, end = _passes.popleft()
    _ended += begin.elapsed_time(end) / 1000
