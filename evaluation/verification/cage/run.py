"""Runs programs in the strongest cage that the machine offers, which is kept for the next one."""

import atexit
import os
import threading
from collections.abc import Sequence

from evaluation.errors import CageError
from evaluation.verification.cage.connection import Cage
from evaluation.verification.cage.model import Limits, Outcome, Tests
from evaluation.verification.cage.syscalls import compiled_filter
from evaluation.verification.cage.two_runs import check, judge_program

MODES = ("namespaces", "landlock")
"""Kinds of cage, the strongest first; each has the seccomp filter and the limits beside it."""
_lock = threading.Lock()
_open: dict[tuple[int, str], Cage] = {}
"""The cage of this process; one that was forked from another has none yet."""


def run_program(
    program: str, tests: Tests, limits: Limits, *, modes: Sequence[str] = MODES
) -> Outcome:
    """Runs the tests against a program in the strongest cage of these that the machine offers.

    Raises CageError where it offers none.
    """
    with _lock:
        try:
            return judge_program(_cage(modes), program, tests, limits)
        except CageError:  # it ended, perhaps before this program; a new one tells
            return judge_program(_cage(modes), program, tests, limits)


def describe_cage(*, modes: Sequence[str] = MODES) -> str:
    """The cage that `run_program` uses, for the results: `namespaces+seccomp`."""
    with _lock:
        return f"{_cage(modes).mode}+seccomp"


def close_cage() -> None:
    """Ends the processes that are kept for the next program."""
    with _lock:
        for cage in _open.values():
            cage.close()
        _open.clear()


def _cage(modes: Sequence[str]) -> Cage:
    compiled_filter()  # without which there is none of any kind
    reasons = []
    for mode in modes:
        cage = _open.get((os.getpid(), mode))
        if cage is not None and cage.is_open:
            return cage
        try:
            cage = Cage(mode)
            check(cage)
        except CageError as reason:
            reasons.append(str(reason))
            continue
        _open[os.getpid(), mode] = cage
        return cage
    raise CageError(
        f"generated programs cannot be run safely on this machine ({'; '.join(reasons)}): allow "
        "user namespaces (`sysctl user.max_user_namespaces=10000`) or Landlock (Linux 5.13 or "
        "newer, `lsm=…,landlock`), or verify on another machine"
    )


def _forget() -> None:
    """In a forked child: the processes are the parent's."""
    global _lock
    _lock = threading.Lock()
    for cage in _open.values():
        cage.disown()
    _open.clear()


os.register_at_fork(after_in_child=_forget)
atexit.register(close_cage)
