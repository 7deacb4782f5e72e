"""Does by Slurm's own commands what Snakemake's executor for Slurm does not.

A killed Snakemake leaves its jobs running, and the next one submits them again. Jobs of ours are known by
the prefix of their names (`slurm-jobname-prefix` of the profile) and by their working folder; the lock of
Snakemake proves that no other run is at work there.

A job that was pre-empted by cancellation stays PREEMPTED, and one whose node failed may stay NODE_FAIL. The
executor would wait for both until somebody puts them back into the queue.
"""

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Sequence

from evaluation.errors import EvaluationError

PREFIX = "staged-evaluation"
"""Beginning of the names of our jobs, as the profile has it."""

STUCK = ("PREEMPTED", "NODE_FAIL")
PATIENCE = 120.0
ROUND = 30.0
"""Seconds between two looks at stuck jobs."""


def end_orphans() -> None:
    """Cancel jobs that a killed Snakemake left, and wait until they have ended.

    They get SIGTERM and keep all items that they have finished.

    Where Slurm does not answer, as on a machine that has its commands alone, nothing can be said of them.

    Raises:
        EvaluationError: A job does not end, or Slurm does not answer any more.
    """
    try:
        if shutil.which("squeue") is None or not (orphans := _jobs()):
            return
    except (subprocess.SubprocessError, OSError):
        return
    try:
        _say(
            f"Jobs {', '.join(orphans)} of a killed run are cancelled; what they have scored is kept."
        )
        _call("scancel", *orphans)
        end = time.monotonic() + PATIENCE
        while left := sorted({*orphans} & {*_jobs()}):
            if time.monotonic() > end:
                raise EvaluationError(
                    f"jobs {', '.join(left)} of a killed run do not end; see `squeue`"
                )
            time.sleep(1.0)
    except (subprocess.SubprocessError, OSError) as error:
        reason = getattr(error, "stderr", None) or str(error)
        raise EvaluationError(
            f"Slurm does not say whether jobs of a killed run are left ({reason.strip()}); start again "
            "when `squeue` answers"
        ) from error


def watch_stuck_jobs() -> None:
    """Put stuck jobs back into the queue, from now on until this process ends."""
    if shutil.which("scontrol") is not None:
        threading.Thread(target=_requeue_for_ever, daemon=True).start()


def _requeue_for_ever() -> None:
    refused: set[str] = set()
    while True:
        time.sleep(ROUND)
        try:
            for job in _jobs(f"--states={','.join(STUCK)}"):
                if job not in refused:
                    _requeue(job, refused)
        except (subprocess.SubprocessError, OSError):  # again in the next round
            continue


def _requeue(job: str, refused: set[str]) -> None:
    try:
        _call("scontrol", "requeue", job)
    except subprocess.CalledProcessError as error:
        refused.add(job)
        _say(
            f"Job {job} is stuck, and Slurm does not take it back ({error.stderr.strip()}); stop this run."
        )
    else:
        _say(
            f"Job {job} was lost or pre-empted: put back into the queue; it goes on after its last item."
        )


def _jobs(*options: str) -> list[str]:
    """Return the numbers of our jobs in this folder."""
    lines = _call("squeue", "--me", "-h", "-o", "%i|%j|%Z", *options).splitlines()
    fields: list[Sequence[str]] = [line.split("|", 2) for line in lines]
    here = os.path.realpath(os.getcwd())
    return [
        job for job, name, folder in fields
        if name.startswith(PREFIX) and os.path.realpath(folder) == here
    ]  # fmt: skip


def _call(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)
