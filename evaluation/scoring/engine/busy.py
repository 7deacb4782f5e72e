"""How long a GPU had work: the time inside forward passes, by its own clock.

Events mark the beginning and the end of a pass in its queue, which is not waited for before the sum is
asked for. A CPU has no such clock, and nothing is counted.
"""

import functools
from collections import deque
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import torch

P = ParamSpec("P")
T = TypeVar("T")

_MOST = 256
"""Passes that are marked and not summed up yet, before those that have ended are."""


class Busy:
    """Adds up the passes of this process."""

    def __init__(self) -> None:
        self._sum = 0.0
        self._marks: deque[tuple[torch.cuda.Event, torch.cuda.Event]] = deque()

    def seconds(self) -> float:
        """Return the seconds with work so far; wait for what is in a GPU's queue."""
        try:
            while self._marks:
                self._marks[0][1].synchronize()
                self._take()
        except RuntimeError:  # of a device that is dead, which whoever computes on it says
            self._marks.clear()
        return self._sum

    def during(self, call: Callable[[], T]) -> T:
        if not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
            return call()
        begin, end = _event(), _event()
        begin.record()
        result = call()
        end.record()
        self._marks.append((begin, end))
        while len(self._marks) > _MOST and self._marks[0][1].query():  # type: ignore[no-untyped-call]
            self._take()
        return result

    def _take(self) -> None:
        begin, end = self._marks.popleft()
        self._sum += begin.elapsed_time(end) / 1000


def _event() -> torch.cuda.Event:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]


BUSY = Busy()
"""The clock of this process, which scores one checkpoint at a time."""


def working(method: Callable[P, T]) -> Callable[P, T]:
    """Count the method's calls, none within another, as work of the device."""

    @functools.wraps(method)
    def counted(*arguments: P.args, **keywords: P.kwargs) -> T:
        return BUSY.during(lambda: method(*arguments, **keywords))

    return counted
