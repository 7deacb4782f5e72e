"""The process from which all programs of a worker are forked: Python is started only once.

It enters the cage itself, before the first program, and never sees a program, a test or an answer:
they travel through descriptors that it hands on. So one program cannot find anything of another.

    worker ── starter ── zygote ─┬─ candidate
                                 └─ judge

The starter ends the zygote when the worker is gone, and the candidate and the judge end with it.
"""

import contextlib
import gc
import math
import os
import resource
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from typing import NoReturn

from evaluation.verification.cage import candidate, landlock, libc, namespaces
from evaluation.verification.cage.confine import arrange_descriptors, confine, limit
from evaluation.verification.cage.judge import judge
from evaluation.verification.cage.model import Limits, Outcome, Tests

JOB = struct.Struct("<dQ")
"""Seconds and megabytes; with it come the descriptors of program, tests and verdict."""
ENDING = struct.Struct("<?ii")
"""Whether time ran out, and the wait statuses of judge and candidate."""
WAIT_FACTOR = 2.0
"""Programs may compute for their seconds, and take this much longer by the clock: a busy machine
must not decide what passes, and a program that sleeps must end."""
READY = b"ready"
_MOST_OPEN = 128
_WATCH_SECONDS = 1.0
_ACCOUNTED = 0.05
"""The kernel ends a process so much before the limit, by its own count, at most."""


def start(
    mode: str, sources: list[str], worker: int, descriptor: int, filter_descriptor: int
) -> NoReturn:
    """The starter: forks the zygote and ends it when the worker `worker` has gone."""
    connection = socket.socket(fileno=descriptor)
    try:
        limit(resource.RLIMIT_NOFILE, _MOST_OPEN)
        seccomp = _read_all(filter_descriptor)
        candidate.preload()
        sys.path[:] = [path for path in sys.path if path not in sources]
        sys.argv[:] = [""]
        libc.prctl(libc.PR_SET_NO_NEW_PRIVS, 1)
        if mode == "namespaces":
            namespaces.leave_the_machine()
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
        zygote = os.fork()
    except OSError as reason:
        connection.send(str(reason).encode()[:1000])
        os._exit(1)
    if zygote == 0:
        _become_zygote(mode, connection, seccomp)
    connection.close()
    while os.getppid() == worker and os.waitpid(zygote, os.WNOHANG) == (0, 0):
        signal.sigtimedwait({signal.SIGCHLD}, _WATCH_SECONDS)
    with contextlib.suppress(ProcessLookupError):
        os.kill(zygote, signal.SIGKILL)
    os._exit(0)


def _become_zygote(mode: str, connection: socket.socket, seccomp: bytes) -> NoReturn:
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
        memory = os.open("/proc/self/statm", os.O_RDONLY)
        null = os.open(os.devnull, os.O_RDWR)
        {"namespaces": namespaces.enter_root, "landlock": landlock.restrict}[mode]()
        libc.drop_capabilities()
        libc.prctl(libc.PR_SET_DUMPABLE, 0)
        libc.die_with_parent(signal.SIGKILL)
        os.environ.clear()
        os.umask(0o077)
    except OSError as reason:
        connection.send(str(reason).encode()[:1000])
        os._exit(1)
    gc.collect()
    gc.freeze()
    connection.send(READY)
    _Zygote(connection, memory, null, seccomp).serve()


class _Zygote:
    def __init__(self, connection: socket.socket, memory: int, null: int, seccomp: bytes) -> None:
        self._connection, self._memory, self._null = connection, memory, null
        self._seccomp = seccomp

    def serve(self) -> NoReturn:
        while True:
            job, descriptors, _, _ = socket.recv_fds(self._connection, JOB.size, 3)
            if not job:
                os._exit(0)
            seconds, memory_mb = JOB.unpack(job)
            ending = self._run(Limits(seconds=seconds, memory_mb=memory_mb), *descriptors)
            self._connection.send(ENDING.pack(*ending))

    def _run(self, limits: Limits, program: int, tests: int, verdict: int) -> tuple[bool, int, int]:
        """Both processes are gone when this returns."""
        deadline = time.monotonic() + WAIT_FACTOR * limits.seconds
        asked, ask = os.pipe()
        answered, answer = os.pipe()
        running, alive = os.pipe()

        def run_candidate() -> None:
            candidate.serve(_read_all(3), 4, 5)

        def run_judge() -> None:
            _judge(3, 4, 5, 6)

        candidate_child = self._fork(limits, (program, asked, answer), run_candidate)
        judge_child = self._fork(limits, (tests, answered, ask, verdict, alive), run_judge)
        for descriptor in (program, tests, verdict, asked, ask, answered, answer, alive):
            os.close(descriptor)
        in_time = self._wait(running, deadline)
        os.close(running)
        # the judge first: it must not see the candidate end
        judged, judge_too_long = _end(judge_child, limits)
        ended, candidate_too_long = _end(candidate_child, limits)
        return not in_time or judge_too_long or candidate_too_long, judged, ended

    def _fork(self, limits: Limits, kept: tuple[int, ...], run: Callable[[], None]) -> int:
        present = int(os.pread(self._memory, 100, 0).split()[0]) * resource.getpagesize()
        child = os.fork()
        if child:
            return child
        try:
            arrange_descriptors(self._null, kept)
            confine(limits, present, self._seccomp)
            run()
        finally:
            os._exit(1)

    def _wait(self, running: int, deadline: float) -> bool:
        """Until the judge has ended; False if time runs out. Ends itself if the worker is gone."""
        seconds = max(deadline - time.monotonic(), 0)
        worker = self._connection.fileno()
        ended = select.select([running, worker], [], [], seconds)[0]
        if worker in ended:
            os._exit(0)
        return bool(ended)


def _end(child: int, limits: Limits) -> tuple[int, bool]:
    """Kills a child if it still runs; returns its wait status, and whether it used up its seconds."""
    gone, status, used = os.wait4(child, os.WNOHANG)
    if not gone:
        os.kill(child, signal.SIGKILL)
        _, status, used = os.wait4(child, 0)
    return status, used.ru_utime + used.ru_stime > math.ceil(limits.seconds) - _ACCOUNTED


def _judge(tests: int, read: int, write: int, verdict: int) -> None:
    def begin(number: int) -> None:
        os.write(verdict, f"{number}\n".encode())

    outcome = judge(Tests.from_bytes(_read_all(tests)), read, write, begin)
    write_verdict(verdict, outcome)


def write_verdict(descriptor: int, outcome: Outcome) -> None:
    data = outcome.to_bytes()
    while data:
        data = data[os.write(descriptor, data) :]


def _read_all(descriptor: int) -> bytes:
    os.lseek(descriptor, 0, os.SEEK_SET)
    with open(descriptor, "rb") as file:
        return file.read()
