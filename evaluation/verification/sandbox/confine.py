"""What each process of a run takes upon itself before it reads a line of foreign code."""

import math
import os
import resource
import signal
import sys
from collections.abc import Sequence

from evaluation.verification.sandbox import libc
from evaluation.verification.sandbox.model import Limits

_MOST_OPEN = 32
_GRACE = 2  # seconds in which the one that watches ends it, and says why, before the kernel does
_FRAMES = 1000
"""How deep Python may recurse, not counting what is below the foreign code."""


def arrange_descriptors(null: int, kept: Sequence[int]) -> None:
    """Leave nothing open but /dev/null as 0, 1, 2 and the given ones as 3, 4, …, in order."""
    high = [os.dup2(old, 100 + place) for place, old in enumerate((null, null, null, *kept))]
    for place, descriptor in enumerate(high):
        os.dup2(descriptor, place)
    os.closerange(len(high), resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def confine(limits: Limits, present_bytes: int, seccomp: bytes) -> None:
    """`present_bytes` is the memory that the process has already; the filter comes last."""
    libc.die_with_parent(signal.SIGKILL)
    for kind, most in (
        (resource.RLIMIT_CPU, math.ceil(limits.seconds) + _GRACE),
        (resource.RLIMIT_AS, present_bytes + (limits.memory_mb << 20)),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, _MOST_OPEN),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
    ):
        limit(kind, most)
    sys.setrecursionlimit(_FRAMES + _depth())
    libc.install_filter(seccomp)


def limit(kind: int, most: int) -> None:
    allowed = resource.getrlimit(kind)[1]
    most = most if allowed == resource.RLIM_INFINITY else min(most, allowed)
    resource.setrlimit(kind, (most, most))


def _depth() -> int:
    frame, depth = sys._getframe(), 0
    while frame.f_back is not None:
        frame, depth = frame.f_back, depth + 1
    return depth + 10
