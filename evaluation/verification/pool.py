"""Verifiers in processes that can be killed, since what a model writes may keep sympy busy for ever.

A job that crashes, takes too long or too much memory gets a verdict without credit and with this reason,
and a new process replaces its own. Nothing that one job does reaches the next.
"""

import multiprocessing
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

from pebble import ProcessExpired, ProcessFuture, ProcessPool

from evaluation.errors import EvaluationError
from evaluation.progress import progress
from evaluation.settings.checks import Check
from evaluation.settings.code_checks import PassesTests
from evaluation.settings.verifiers import Program, Verifier
from evaluation.verification.checks.code import LIMITS
from evaluation.verification.registry import libraries_of
from evaluation.verification.sandbox.run import most_seconds
from evaluation.verification.verdicts import Verdict, shortened
from evaluation.verification.worker import (
    LIBRARIES_VARIABLE,
    OUT_OF_MEMORY,
    prepare,
    verify_here,
)

Job = tuple[Verifier | Check, Mapping[str, Any], str]
"""A verifier's settings, the prompt's document, and a completion cut at its stops."""

LONGEST = 4_000_000
"""Characters of a completion that are verified; a million tokens have about as many."""

SANDBOX_SECONDS = 60.0
"""The first program of a worker builds the sandbox."""

_LONGEST_SOCKET_FOLDER = 107 - len("/pymp-01234567/listener-01234567")
"""Bytes; an address has 108 with its end (unix(7))."""

_LONGEST_ANSWER = 10_000
_LONGEST_REASON = 1_000

_WAITING = 16
"""Jobs that the pool has waiting for each worker; the others stay with the caller."""


def verify_all(
    jobs: Sequence[Job],
    *,
    workers: int,
    seconds: float = 10.0,
    memory_mb: int = 1024,
    nltk_data: Path | None = None,
) -> Iterator[tuple[int, Verdict]]:
    """Verify completions in several processes, and show progress.

    A caller that stops early ends all processes. The EvaluationError of a verifier that cannot work
    at all, as without its data, is raised here.

    Args:
        jobs: Settings, document and completion of each verdict.
        workers: Processes.
        seconds: Limit of each job; a program may take its own seconds on top.
        memory_mb: Limit of each job, in MB.
        nltk_data: Folder that NLTK reads from alone; None for NLTK's own places.

    Yields:
        Number of a job in `jobs` and its verdict, in the order in which they are done.
    """
    if not jobs:
        return  # no processes for nothing
    numbered = iter(enumerate(jobs))
    waiting: dict[ProcessFuture[Verdict], int] = {}
    libraries = libraries_of(verifier for verifier, _, _ in jobs)
    bar = progress("verification", len(jobs), "answer")
    pool = ProcessPool(
        workers,
        initializer=prepare,
        initargs=(memory_mb, nltk_data, libraries),
        context=_context(libraries),
    )
    try:
        while True:
            for number, job in islice(numbered, _WAITING * workers - len(waiting)):
                waiting[_scheduled(pool, job, seconds)] = number
            if not waiting:
                return
            wait(waiting, return_when=FIRST_COMPLETED)
            for done in [future for future in waiting if future.done()]:
                yield waiting.pop(done), _verdict(done, memory_mb)
                bar.update()
    finally:
        bar.close()
        pool.stop()  # type: ignore[no-untyped-call]
        pool.join()


def _scheduled(pool: ProcessPool, job: Job, seconds: float) -> "ProcessFuture[Verdict]":
    settings, _, completion = job
    if (verdict := too_long(completion)) is not None:
        future: ProcessFuture[Verdict] = ProcessFuture()
        future.set_result(verdict)
        return future
    if isinstance(settings, Program | PassesTests):
        own = settings.seconds if isinstance(settings, Program) else LIMITS.seconds
        seconds += most_seconds(own) + SANDBOX_SECONDS
    return pool.schedule(verify_here, args=job, timeout=seconds)


def too_long(completion: str) -> Verdict | None:
    """Return the verdict on a completion that is too long to be verified.

    Args:
        completion: Text of a model, cut at its stops.

    Returns:
        A verdict without credit beyond LONGEST characters; None for any other completion.
    """
    if len(completion) <= LONGEST:
        return None
    reason = f"the completion has {len(completion):,} characters; {LONGEST:,} are verified at most"
    return Verdict(credit=None, reason=reason)


def _verdict(done: "ProcessFuture[Verdict]", memory_mb: int) -> Verdict:
    try:
        return storable(done.result())
    except EvaluationError:
        raise
    except TimeoutError as error:
        reason = f"the verifier was not done after {error.args[1]:g} seconds"
    except ProcessExpired as error:
        if error.exitcode == OUT_OF_MEMORY:
            reason = f"the verifier took more than {memory_mb} MB of memory"
        else:
            reason = f"the verifier's process died (exit code {error.exitcode})"
    except Exception as error:  # noqa: BLE001 - a verifier's libraries raise what they like
        reason = f"the verifier failed: {type(error).__name__}: {error}"
    return storable(Verdict(credit=None, reason=reason))


def storable(verdict: Verdict) -> Verdict:
    """Return a verdict that any file can hold: without halves of characters, of bounded size.

    Args:
        verdict: As a verifier gave it.

    Returns:
        The same verdict with its answer and reason made valid and cut.
    """
    answer = None if verdict.answer is None else _whole(verdict.answer)[:_LONGEST_ANSWER]
    return replace(
        verdict, answer=answer, reason=shortened(_whole(verdict.reason), _LONGEST_REASON)
    )


def _whole(text: str) -> str:
    return text.encode(errors="replace").decode()


def _context(libraries: Sequence[str]) -> Any:
    """Processes are copies of one that has imported everything, with the same hashes in every run."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["evaluation.verification.preload"])
    variables = {LIBRARIES_VARIABLE: " ".join(libraries), "PYTHONHASHSEED": "0"}
    with _environment(variables), _place_for_a_socket():  # sympy goes through sets
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
    """`/tmp` where the temporary folder's path leaves a socket's address no room.

    As CPython 3.14 does it: https://github.com/python/cpython/issues/132124
    """
    given = tempfile.tempdir
    if len(os.fsencode(tempfile.gettempdir())) > _LONGEST_SOCKET_FOLDER:
        tempfile.tempdir = "/tmp"
    try:
        yield
    finally:
        tempfile.tempdir = given
