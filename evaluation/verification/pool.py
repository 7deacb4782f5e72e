"""Runs verifiers in processes that can be killed: a model's text may keep sympy busy for ever.

A text that needs more CPU time or memory than the limits allow is a wrong answer, and its verdict states
this. A job that crashes, or whose process got too little CPU time, has no verdict: the machine is at
fault. A new process then replaces the worker. Each job has the whole memory limit for itself.
"""

import logging
import multiprocessing
import os
import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

from pebble import ProcessExpired, ProcessFuture, ProcessPool

from evaluation import processes
from evaluation.errors import EvaluationError
from evaluation.files import without_surrogates
from evaluation.processes import progress
from evaluation.settings.checks import Check, CheckSettings
from evaluation.settings.verifiers import Program, Verifier
from evaluation.verification import nltk_data
from evaluation.verification.checks.registry import LIMITS
from evaluation.verification.registry import VERIFIERS, verify
from evaluation.verification.sandbox import run
from evaluation.verification.verdicts import INVALID, OUT_OF_MEMORY, OUT_OF_TIME, Verdict, shortened

VerifierJob = tuple[Verifier | Check, Mapping[str, Any], str]
"""A verifier's settings, the prompt's document, and a completion cut at its stop strings."""

_LONGEST_ANSWER, _LONGEST_REASON = 10_000, 1_000
_WAITING = 16
"""Jobs per worker that are submitted to the pool at a time."""
KINDS_VARIABLE = "EVALUATION_VERIFIER_KINDS"
"""Environment variable with the kinds of verifiers whose libraries `preload.py` imports."""
_PATIENCE = 10
"""A job may take this many times its limit of CPU time in all, since other processes need time, too."""
_SANDBOX_SECONDS = 60.0
"""Seconds for trying the sandbox, which a worker does for its first program."""
_TOO_MUCH_MEMORY = 77
"""Exit code of a worker whose job exceeded the memory limit: its libraries may be left inconsistent."""


def verify_all(
    jobs: Sequence[VerifierJob],
    *,
    workers: int,
    seconds: float = 10.0,
    memory_mb: int = 1024,
    nltk_data: Path | None = None,
    sandbox: run.Kind = "seccomp",
) -> Iterator[tuple[int, Verdict]]:
    """Verify completions in several processes, and show progress.

    If the caller stops early, all processes end. If a verifier cannot work at all (for example without
    its data), its EvaluationError is raised here.

    Args:
        jobs: Settings, document and completion of each verdict.
        seconds: Limit of each job's CPU time; a program has its own.
        nltk_data: The only folder that NLTK reads from; None for NLTK's default folders.
        sandbox: What confines programs.

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
        workers, initializer=_prepare, initargs=(nltk_data, sandbox, kinds), context=_context(kinds)
    )
    try:
        while True:
            for number, job in islice(numbered, _WAITING * workers - len(waiting)):
                most, args = _most_seconds(job[0], seconds), (*job, seconds, memory_mb)
                waiting[pool.schedule(_verify_here, args=args, timeout=most)] = number
            if not waiting:
                return
            wait(waiting, return_when=FIRST_COMPLETED)
            for done in [future for future in waiting if future.done()]:
                yield waiting.pop(done), storable(_verdict(done, seconds, memory_mb))
                bar.update()
    finally:
        bar.close()
        pool.stop()  # type: ignore[no-untyped-call]
        pool.join()


def _most_seconds(settings: Verifier | Check, seconds: float) -> float:
    """Return how many seconds of wall-clock time a job can take; a program has a process of its own."""
    runs = settings.check == "passes_tests" if isinstance(settings, CheckSettings) else False
    if not (runs or isinstance(settings, Program)):
        return _PATIENCE * seconds
    own = settings.seconds if isinstance(settings, Program) else LIMITS.seconds
    return _PATIENCE * seconds + run.most_seconds(own) + _SANDBOX_SECONDS


def _verdict(done: "ProcessFuture[Verdict]", seconds: float, memory_mb: int) -> Verdict:
    try:
        return done.result()
    except EvaluationError:
        raise
    except TimeoutError as error:
        reason = (
            f"the verifier was not done after {error.args[1]:g} seconds, in which it had less than "
            f"{seconds:g} seconds of CPU time"
        )
        return Verdict(credit=None, reason=reason)
    except ProcessExpired as error:
        if error.exitcode == -signal.SIGPROF:
            reason = f"it takes more than {seconds:g} seconds of CPU time to verify"
            return Verdict(credit=0.0, reason=reason, note=OUT_OF_TIME)
        if error.exitcode == _TOO_MUCH_MEMORY:
            reason = f"it takes more than {memory_mb} MB of memory to verify"
            return Verdict(credit=0.0, reason=reason, note=OUT_OF_MEMORY)
        reason = f"the verifier's process died (exit code {error.exitcode})"
        return Verdict(credit=None, reason=reason)
    except Exception as error:  # noqa: BLE001 - a verifier's libraries may raise anything
        reason = f"the verifier failed: {type(error).__name__}: {error}"
        return Verdict(credit=None, reason=reason, note=INVALID)


def storable(verdict: Verdict) -> Verdict:
    """Return a verdict that any file can store: without lone surrogates, of bounded size."""
    answer = verdict.answer and without_surrogates(verdict.answer)[:_LONGEST_ANSWER]
    reason = shortened(without_surrogates(verdict.reason), _LONGEST_REASON)
    return replace(verdict, answer=answer, reason=reason)


def _context(kinds: Sequence[str]) -> Any:
    """Return a context whose workers are forked from a process with all libraries and a fixed hash seed."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["evaluation.verification.preload"])
    before = dict(os.environ)
    os.environ.update({KINDS_VARIABLE: " ".join(kinds), "PYTHONHASHSEED": "0"})
    try:
        forkserver.ensure_running()  # sympy iterates over sets
    finally:
        del os.environ[KINDS_VARIABLE], os.environ["PYTHONHASHSEED"]
        os.environ.update(before)
    return context


def load_libraries(kinds: Iterable[str]) -> None:
    """Import the libraries of some kinds; if one is not installed, its jobs fail later."""
    for load in filter(None, (VERIFIERS[kind].load for kind in kinds)):
        with suppress(ImportError):
            load()


def _prepare(nltk_folder: Path | None, sandbox: run.Kind, kinds: Sequence[str]) -> None:
    """Make a worker end with its parent, and do what the caller chose."""
    logging.disable()  # libraries log texts that they cannot parse in full length
    processes.end_with_parent()
    if nltk_folder is not None:
        nltk_data.use(nltk_folder)
    run.use(sandbox)
    load_libraries(kinds)


def _verify_here(
    settings: Verifier | Check,
    document: Mapping[str, Any],
    completion: str,
    seconds: float,
    memory_mb: int,
) -> Verdict:
    """Return a job's verdict; the process ends if it exceeds its CPU time or memory.

    The kernel ends it by SIGPROF, since Python's handlers do not run inside of one long operation.
    """
    processes.limit_memory(memory_mb << 20)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        return verify(settings, document, completion)
    except MemoryError:
        os._exit(_TOO_MUCH_MEMORY)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
