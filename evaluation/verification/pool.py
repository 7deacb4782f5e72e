"""Runs verifiers in processes that can be killed: a model's text may keep sympy busy for ever.

A text that needs more CPU time or memory than the limits allow is a wrong answer, and its verdict states
this. A job that crashes, or whose process got too little CPU time, has no verdict: the machine is at
fault. A new process then replaces the worker. A job cannot affect later ones.
"""

import logging
import multiprocessing
import os
import resource
import signal
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import islice
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

from pebble import ProcessExpired, ProcessFuture, ProcessPool

from evaluation import children
from evaluation.errors import EvaluationError
from evaluation.escaping import without_surrogates
from evaluation.progress import progress
from evaluation.settings.checks import Check, CheckSettings
from evaluation.settings.verifiers import Program, Verifier
from evaluation.verification import nltk_data
from evaluation.verification.checks.registry import LIMITS
from evaluation.verification.registry import VERIFIERS, verify
from evaluation.verification.sandbox.run import most_seconds
from evaluation.verification.verdicts import INVALID, OUT_OF_MEMORY, OUT_OF_TIME, Verdict, shortened

VerifierJob = tuple[Verifier | Check, Mapping[str, Any], str]
"""A verifier's settings, the prompt's document, and a completion cut at its stop strings."""

_LONGEST = 4_000_000
"""Longest completion that is verified, in characters: about a million tokens."""

_SANDBOX_SECONDS = 60.0
"""Seconds for building the sandbox, which a worker does for its first program."""

_LONGEST_SOCKET_FOLDER = 107 - len("/pymp-01234567/listener-01234567")
"""Bytes; a socket's address has 108 with its terminating zero (unix(7))."""

_LONGEST_ANSWER = 10_000
_LONGEST_REASON = 1_000

_WAITING = 16
"""Jobs per worker that are submitted to the pool at a time."""

_KINDS_VARIABLE = "EVALUATION_VERIFIER_KINDS"
"""Environment variable with the kinds of verifiers whose libraries `preload` imports."""

_PATIENCE = 10
"""A job may take this many times its limit of CPU time in all, since other processes need time, too."""

_TOO_MUCH_MEMORY, _WORKER_GREW = 77, 78
"""Exit codes of a worker whose memory limit was exceeded: by its last job alone, or with earlier ones."""

_most_kilobytes = 0
"""Peak memory allowed in this process, if it is a worker."""

_allowed_kilobytes = 0
"""Part of it that jobs may add."""


def verify_all(
    jobs: Sequence[VerifierJob],
    *,
    workers: int,
    seconds: float = 10.0,
    memory_mb: int = 1024,
    nltk_data: Path | None = None,
) -> Iterator[tuple[int, Verdict]]:
    """Verify completions in several processes, and show progress.

    If the caller stops early, all processes end. If a verifier cannot work at all (for example without
    its data), its EvaluationError is raised here.

    Args:
        jobs: Settings, document and completion of each verdict.
        seconds: Limit of each job's CPU time; a program has its own.
        nltk_data: The only folder that NLTK reads from; None for NLTK's default folders.

    Yields:
        Index of a job in `jobs` and its verdict, in the order in which jobs finish.
    """
    if not jobs:
        return  # no processes for nothing
    numbered = iter(enumerate(jobs))
    waiting: dict[ProcessFuture[Verdict], int] = {}
    kinds = sorted({verifier.kind for verifier, _, _ in jobs} & VERIFIERS.keys())
    bar = progress("verification", len(jobs), "answer")
    pool = ProcessPool(
        workers,
        initializer=_prepare,
        initargs=(memory_mb, nltk_data, kinds),
        context=_context(kinds),
    )
    try:
        while True:
            for number, job in islice(numbered, _WAITING * workers - len(waiting)):
                waiting[_scheduled(pool, job, seconds)] = number
            if not waiting:
                return
            wait(waiting, return_when=FIRST_COMPLETED)
            for done in [future for future in waiting if future.done()]:
                yield waiting.pop(done), _verdict(done, seconds, memory_mb)
                bar.update()
    finally:
        bar.close()
        pool.stop()  # type: ignore[no-untyped-call]
        pool.join()


def _scheduled(pool: ProcessPool, job: VerifierJob, seconds: float) -> "ProcessFuture[Verdict]":
    settings, _, completion = job
    if (verdict := too_long(completion)) is not None:
        future: ProcessFuture[Verdict] = ProcessFuture()
        future.set_result(verdict)
        return future
    wall_seconds = _PATIENCE * seconds
    if isinstance(settings, Program) or (
        isinstance(settings, CheckSettings) and settings.check == "passes_tests"
    ):
        own = settings.seconds if isinstance(settings, Program) else LIMITS.seconds
        wall_seconds += most_seconds(own) + _SANDBOX_SECONDS
    return pool.schedule(_verify_here, args=(*job, seconds), timeout=wall_seconds)


def too_long(completion: str) -> Verdict | None:
    """Return the verdict on a completion that is too long to be verified; None for any other."""
    if len(completion) <= _LONGEST:
        return None
    reason = f"the completion has {len(completion):,} characters; {_LONGEST:,} are verified at most"
    return Verdict(credit=None, reason=reason)


def _verdict(done: "ProcessFuture[Verdict]", seconds: float, memory_mb: int) -> Verdict:
    try:
        return storable(done.result())
    except EvaluationError:
        raise
    except TimeoutError as error:
        reason = (
            f"the verifier was not done after {error.args[1]:g} seconds, in which it had less than "
            f"{seconds:g} seconds of CPU time"
        )
    except ProcessExpired as error:
        if error.exitcode == -signal.SIGPROF:
            reason = f"it takes more than {seconds:g} seconds of CPU time to verify"
            return Verdict(credit=0.0, reason=reason, note=OUT_OF_TIME)
        if error.exitcode == _TOO_MUCH_MEMORY:
            reason = f"it takes more than {memory_mb} MB of memory to verify"
            return Verdict(credit=0.0, reason=reason, note=OUT_OF_MEMORY)
        if error.exitcode == _WORKER_GREW:
            reason = f"the verifier took more than {memory_mb} MB of memory, with those before it"
        else:
            reason = f"the verifier's process died (exit code {error.exitcode})"
    except Exception as error:  # noqa: BLE001 - a verifier's libraries may raise anything
        reason = f"the verifier failed: {type(error).__name__}: {error}"
        return storable(Verdict(credit=None, reason=reason, note=INVALID))
    return storable(Verdict(credit=None, reason=reason))


def storable(verdict: Verdict) -> Verdict:
    """Return a verdict that any file can store: without lone surrogates, of bounded size."""
    answer = (
        None if verdict.answer is None else without_surrogates(verdict.answer)[:_LONGEST_ANSWER]
    )
    return replace(
        verdict,
        answer=answer,
        reason=shortened(without_surrogates(verdict.reason), _LONGEST_REASON),
    )


def _context(kinds: Sequence[str]) -> Any:
    """Return a context whose workers are forked from a process with all libraries and a fixed hash seed."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["evaluation.verification.preload"])
    variables = {_KINDS_VARIABLE: " ".join(kinds), "PYTHONHASHSEED": "0"}
    with _environment(variables), _place_for_a_socket():  # sympy iterates over sets
        forkserver.ensure_running()
    return context


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _place_for_a_socket() -> Iterator[None]:
    """Use `/tmp` if the temporary folder's path is too long for the address of a socket.

    CPython 3.14 does the same: https://github.com/python/cpython/issues/132124
    """
    given = tempfile.tempdir
    if len(os.fsencode(tempfile.gettempdir())) > _LONGEST_SOCKET_FOLDER:
        tempfile.tempdir = "/tmp"
    try:
        yield
    finally:
        tempfile.tempdir = given


def preload() -> None:
    """Import the verifiers' libraries in the process that all workers are forked from.

    The process ends when its parent ends, and its workers end with it. Otherwise it would wait for its
    last worker, which an answer may keep busy for ever.
    """
    _end_with_parent()
    _load(os.environ.get(_KINDS_VARIABLE, "").split())


def _load(kinds: Iterable[str]) -> None:
    """Import the libraries of some kinds; if one is not installed, its jobs fail later."""
    for load in filter(None, (VERIFIERS[kind].load for kind in kinds)):
        with suppress(ImportError):
            load()


def _end_with_parent() -> None:
    """Make the kernel kill this process when its parent dies."""
    children.end_with_parent()
    parent = multiprocessing.parent_process()
    if parent is not None and not parent.is_alive():  # the parent died before the call above
        os._exit(1)


def _prepare(memory_mb: int, nltk_folder: Path | None, kinds: Sequence[str]) -> None:
    """Make a worker end with its parent, and limit the memory that it adds to its present use.

    Allocations fail at twice the limit. Libraries may take a failed allocation for a wrong answer, so
    `_verify_here` gives up every job that has exceeded the limit itself.
    """
    global _most_kilobytes, _allowed_kilobytes
    logging.disable()  # libraries log texts that they cannot parse in full length
    _end_with_parent()
    if nltk_folder is not None:
        nltk_data.use(nltk_folder)
    _load(kinds)
    _allowed_kilobytes = memory_mb * 1024
    _most_kilobytes = _peak_kilobytes() + _allowed_kilobytes
    children.limit_memory(2 * memory_mb * 1024**2)


def _verify_here(
    settings: Verifier | Check, document: Mapping[str, Any], completion: str, seconds: float
) -> Verdict:
    """Return a job's verdict; the process ends if it exceeds its CPU time or memory.

    The kernel ends it by SIGPROF, since Python's handlers do not run inside of one long operation.
    """
    was_small = _peak_kilobytes() < _most_kilobytes - _allowed_kilobytes / 2
    excessive = _TOO_MUCH_MEMORY if was_small else _WORKER_GREW
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        verdict = verify(settings, document, completion)
    except MemoryError:
        os._exit(excessive)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    if _peak_kilobytes() > _most_kilobytes:
        os._exit(excessive)
    return verdict


def _peak_kilobytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
