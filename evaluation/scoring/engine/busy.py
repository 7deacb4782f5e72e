"""How long a GPU had work: the time inside forward passes, by its own clock.

Events mark the beginning and the end of a pass in the GPU's queue. Nothing waits for them before the
sum is asked for. A CPU has no such clock, so nothing is counted.
"""

import functools
from collections import deque
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import torch

P = ParamSpec("P")
T = TypeVar("T")

_MOST = 256
"""Passes whose events are kept before those that have ended are added up."""

_ended = 0.0
"""Seconds of the passes that were added up."""

_passes: deque[tuple[torch.cuda.Event, torch.cuda.Event]] = deque()


def busy_seconds() -> float:
    """Wait for the GPU's queue, and add up the time it had work from this process.

    Returns:
        Seconds since the process began; 0 on CPU.
    """
    try:
        while _passes:
            _passes[0][1].synchronize()
            _add_first()
    except RuntimeError:  # of a dead GPU, which whoever computes on it reports
        _passes.clear()
    return _ended


def working(method: Callable[P, T]) -> Callable[P, T]:
    """Count the method's calls, none within another, as work of the GPU.

    Args:
        method: What begins work of a GPU.

    Returns:
        The same method, with events before and after it.
    """

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
