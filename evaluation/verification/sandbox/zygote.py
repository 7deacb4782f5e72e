"""The process from which all programs of a worker are forked, so that Python starts only once.

It enters the sandbox before the first program. It never reads a program, a test or an answer, but only
passes on their descriptors. So one program cannot find anything of another.

    worker ── starter ── zygote ─┬─ plain run: program and tests
                                 └─ guarded run: candidate and tester

The starter ends the zygote when the worker has ended, and the runs end with it.
"""

import contextlib
import gc
import json
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

from evaluation.children import end_with_parent
from evaluation.verification.sandbox import candidate, isolation, libc, plain_run, tester
from evaluation.verification.sandbox.isolation import arrange_descriptors, confine, limit
from evaluation.verification.sandbox.model import Limits, Tests, Use

JOB = struct.Struct("<dQ?")
"""Seconds, megabytes, whether guarded; with it come the descriptors of program, tests,
output and secret."""
ENDING = struct.Struct("<Bii")
"""How the run ended, and the wait statuses of tester and candidate (in a plain run twice the same)."""
DONE, COMPUTED, WAITED, STARVED = range(4)
"""It ended by itself; used its CPU seconds; waited as long; or a busy machine allowed it neither."""
PATIENCE = 10.0
"""The limit is CPU time; in wall-clock time, a busy machine may take this many times longer."""
READY = b"ready"
_ENTER = {"namespaces": isolation.enter_root, "landlock": isolation.apply_landlock}
_MOST_OPEN = 128
_WATCH_SECONDS = 1.0
_IDLE = 0.005
"""A process that uses less CPU per second is waiting; one that a busy machine delays uses more."""
_ACCOUNTED = 0.05
"""Seconds after the earliest end of the limit at which CPU time is checked."""


def start(
    mode: str, sources: list[str], worker: int, descriptor: int, filter_descriptor: int
) -> NoReturn:
    """Act as the starter: fork the zygote and end it when the worker has ended.

    Args:
        sources: Folders of `sys.path` that programs must not import from.
    """
    connection = socket.socket(fileno=descriptor)
    try:
        limit(resource.RLIMIT_NOFILE, _MOST_OPEN)
        seccomp = _read_all(filter_descriptor)
        plain_run.preload()
        sys.path[:] = [path for path in sys.path if path not in sources]
        sys.argv[:] = [""]
        libc.prctl(libc.PR_SET_NO_NEW_PRIVS, 1)
        if mode != "landlock":
            isolation.enter_namespaces()
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
        _ENTER[mode]()
        libc.drop_capabilities()
        libc.prctl(libc.PR_SET_DUMPABLE, 0)
        end_with_parent()
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
            job, descriptors, _, _ = socket.recv_fds(self._connection, JOB.size, 4)
            if not job:
                os._exit(0)
            seconds, memory_mb, guarded = JOB.unpack(job)
            limits = Limits(seconds=seconds, memory_mb=memory_mb)
            run = self._guarded if guarded else self._plain
            self._connection.send(ENDING.pack(*run(limits, *descriptors)))
            for descriptor in descriptors:
                os.close(descriptor)

    def _plain(
        self, limits: Limits, program: int, tests: int, output: int, secret: int
    ) -> tuple[int, int, int]:
        """Run program and tests in one process, which has ended when this returns."""
        running, alive = os.pipe()

        def run() -> None:
            plain_run.serve(_read_all(3), _read_tests(4)[0], 6, 5)

        child = self._fork(limits, (program, tests, output, secret, alive), run)
        os.close(alive)
        ending, [(status, used)] = self._end(running, limits, [child])
        if ending == STARVED and used.ru_nvcsw > used.ru_nivcsw:
            ending = WAITED  # it gave up the processor more often than it lost it
        return ending, status, status

    def _guarded(
        self, limits: Limits, program: int, tests: int, output: int, secret: int
    ) -> tuple[int, int, int]:
        """Run tester and candidate in two processes, which have ended when this returns."""
        asked, ask = os.pipe()
        answered, answer = os.pipe()
        running, alive = os.pipe()

        def run_candidate() -> None:
            candidate.serve(_read_all(3), 4, 5)

        def run_tester() -> None:
            tester.serve(*_read_tests(3), 4, 5, 6)

        candidate_child = self._fork(limits, (program, asked, answer), run_candidate)
        tester_child = self._fork(limits, (tests, answered, ask, output, alive), run_tester)
        for descriptor in (asked, ask, answered, answer, alive):
            os.close(descriptor)
        # the tester first: it must not see the candidate end
        ending, [(tested, _), (status, _)] = self._end(
            running, limits, [tester_child, candidate_child]
        )
        return ending, tested, status

    def _end(
        self, running: int, limits: Limits, children: list[int]
    ) -> tuple[int, list[tuple[int, resource.struct_rusage]]]:
        """Wait for the children and kill those that still run; return how the run and they ended."""
        ending = self._wait(running, limits, children)
        os.close(running)
        ends = [_end(child) for child in children]
        is_over = any(used.ru_utime + used.ru_stime > limits.seconds for _, used in ends)
        return COMPUTED if is_over else ending, ends

    def _fork(self, limits: Limits, descriptors: tuple[int, ...], run: Callable[[], None]) -> int:
        present = int(os.pread(self._memory, 100, 0).split()[0]) * resource.getpagesize()
        child = os.fork()
        if child:
            return child
        try:
            arrange_descriptors(self._null, descriptors)
            confine(limits, present, self._seccomp)
            run()
        finally:
            os._exit(1)

    def _wait(self, running: int, limits: Limits, children: list[int]) -> int:
        """Wait until all copies of `alive` are closed, or time runs out; exit if the worker has ended."""
        worker = self._connection.fileno()
        end, waited = time.monotonic() + PATIENCE * limits.seconds, 0.0
        begin, computed, most = time.monotonic(), 0.0, 0.0
        while waited < limits.seconds:
            if most > limits.seconds:
                return COMPUTED
            if begin > end:
                return STARVED
            patience = min(1.0, limits.seconds - most + _ACCOUNTED)
            ended = select.select([running, worker], [], [], patience)[0]
            if worker in ended:
                os._exit(0)
            if ended:
                return DONE
            times = [_computed(child) for child in children]
            now, total, most = time.monotonic(), sum(times), max(times)
            waited = waited + now - begin if total - computed < _IDLE * (now - begin) else 0.0
            begin, computed = now, total
        return WAITED


def _computed(child: int) -> float:
    """Return the CPU seconds of a process that was not yet waited for (clock_getcpuclockid(3))."""
    return time.clock_gettime((~child << 3) | 2)


def _end(child: int) -> tuple[int, resource.struct_rusage]:
    """Kill a child if it still runs; return its wait status and resource usage."""
    ended, status, used = os.wait4(child, os.WNOHANG)
    if not ended:
        os.kill(child, signal.SIGKILL)
        _, status, used = os.wait4(child, 0)
    return status, used


def _read_tests(descriptor: int) -> tuple[Tests, Use]:
    fields, use = json.loads(_read_all(descriptor))
    return Tests(**{**fields, "asserts": tuple(fields["asserts"])}), Use(**use)


def _read_all(descriptor: int) -> bytes:
    os.lseek(descriptor, 0, os.SEEK_SET)
    with open(descriptor, "rb") as file:
        return file.read()
