"""A limit on the time and the memory that one row's templates may take.

A mistake in a suite, such as `range(10**9)` or `'a' * 10**10`, then ends in an error instead of a
machine that no longer responds. Memory is limited for the whole process, whichever operator or filter
allocates it; the alarm interrupts loops and regular expressions alike. Only time counts in which the row
is computed, not that in which the process was stopped or waited for others.
"""

import contextlib
import resource
import signal
import time
from collections.abc import Iterator
from types import FrameType

from evaluation.children import limit_memory
from evaluation.errors import SourceError
from evaluation.wording import one_line, with_class

SECONDS = 10.0
MEMORY = 1 << 30
"""Bytes that a row may take in addition to the process's memory when the row begins."""

_AGAIN = 1.0
"""Seconds until the alarm goes off again, in case the row has had too little of the CPU, or something
has caught the first."""

_SHARE = 0.9
"""Share of the seconds that must be CPU time: a row that computes never has all of a busy machine."""


class OutOfTime(BaseException):
    """A row takes too long. It is no Exception, as Jinja catches those while it folds constants."""

    def __str__(self) -> str:
        return f"it takes more than {SECONDS:g} seconds for one row"


@contextlib.contextmanager
def row_limits() -> Iterator[None]:
    """Limit the time and memory of the block; for the main thread only.

    Raises:
        OutOfTime: The block takes too long.
        MemoryError: It takes too much memory.
    """
    begin = time.thread_time()

    def stop(signum: int, frame: FrameType | None) -> None:
        if time.thread_time() - begin >= SECONDS * _SHARE:
            raise OutOfTime

    before = signal.signal(signal.SIGALRM, stop)
    timer = signal.setitimer(signal.ITIMER_REAL, SECONDS, _AGAIN)
    try:
        with memory_limit(MEMORY):
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *timer)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def limited_row(place: str) -> Iterator[None]:
    """Limit the time and memory of the block, which handles a row; errors name its `place`.

    Raises:
        SourceError: The block raised it, or took too much time or memory.
    """
    try:
        with row_limits():
            yield
    except (SourceError, OutOfTime, MemoryError) as error:
        raise SourceError(f"{place}: {reason_of(error)}") from None


def reason_of(error: BaseException) -> str:
    """Return an error's message on one line, shortened.

    The error's class stands before it where the message alone explains nothing.
    """
    if isinstance(error, MemoryError):
        return "it takes more than a gigabyte of memory for one row"
    if isinstance(error, SourceError):
        return str(error)
    words = one_line(error)
    if "No filter named 'random'" in words:
        return "it draws at random (`random`), but prompts must be the same whenever they are made"
    known = isinstance(error, OutOfTime | TypeError | ValueError)
    return words if words and known else with_class(error)


@contextlib.contextmanager
def memory_limit(more: int) -> Iterator[None]:
    """Limit the bytes that the block may take besides the present memory of the process.

    Raises:
        MemoryError: The block takes more.
    """
    before = limit_memory(more)
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
