"""Does what Snakemake's Slurm executor does not: checks accounts, ends orphaned jobs, requeues stuck ones.

A killed Snakemake leaves its jobs running, and the next one submits them again: two jobs would score
the same checkpoint. So every run writes a record of itself, and the next run cancels the jobs of
killed runs; the store keeps what they scored.

A job pre-empted by cancellation stays PREEMPTED, and one whose node failed may stay NODE_FAIL. The
executor would wait for both until somebody puts them back into the queue; this module does.
"""

import contextlib
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from evaluation.errors import EvaluationError
from evaluation.files import write_json
from evaluation.orchestration.internals import Internals, keep_unanswered, value_of
from evaluation.orchestration.processes import Process, process

_RECORDS = Path(".snakemake") / "slurm_runs"
"""Has a file for each run, named like all jobs of the run, that identifies its process."""

_PLACEHOLDER = "YOUR_ACCOUNT"
"""The placeholder for the account in the shipped profile."""


def check_cluster(workflow: Any) -> None:
    """Raise EvaluationError if a run with Slurm has no sbatch, or the shipped placeholder as account."""
    internals = Internals(workflow)
    if internals.slurm_executor is None:
        return
    if shutil.which("sbatch") is None:
        raise EvaluationError(
            "sbatch: no such command on this machine; start Snakemake on a login node of the "
            "cluster, or without `--profile slurm_profile` (with `--cores N`) to run all jobs here"
        )
    if _PLACEHOLDER in _accounts(internals) and _has_accounting():
        raise EvaluationError(
            f"slurm_account is {_PLACEHOLDER}, as shipped: put the account that your jobs are charged to "
            "into the profile's config.yaml, under default-resources"
        )


def guard_run(workflow: Any) -> None:
    """Cancel the jobs of killed runs at the start of a run, then requeue this run's stuck jobs.

    `end_orphans` raises EvaluationError if orphaned jobs cannot be found or do not end.
    """
    internals = Internals(workflow)
    executor = internals.slurm_executor
    if executor is None:
        return
    # Without `requeue` the executor itself resubmits the jobs of a failed node.
    requeue = internals.part("executor_settings.requeue")
    states = ("PREEMPTED", "NODE_FAIL") if requeue else ("PREEMPTED",)
    keep_unanswered(executor, requeuing(executor.run_uuid, states))
    end_orphans(_RECORDS)
    write_json(_RECORDS / f"{executor.run_uuid}.json", asdict(process()))


def end_orphans(records: Path, patience: float = 120.0) -> list[str]:
    """Cancel the jobs of killed runs, wait `patience` seconds until they have ended, and return their ids.

    A cancelled scoring job gets SIGTERM and keeps all items that it has finished. EvaluationError is
    raised if Slurm does not answer, or a job does not end.
    """
    ended = []
    for path in sorted(records.glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        if Process(content["host"], content["pid"], content["started"]).alive:
            continue
        try:
            ended += _end_jobs(path.stem, patience)
        except (subprocess.SubprocessError, OSError) as error:
            reason = getattr(error, "stderr", None) or str(error)
            raise EvaluationError(
                "a Snakemake was killed in this folder and Slurm does not report whether its jobs "
                f"still run ({reason.strip()}); start again when `squeue` answers"
            ) from error
        path.unlink(missing_ok=True)
    return ended


def requeuing(name: str, states: Sequence[str]) -> Callable[[Mapping[str, str]], None]:
    """Return a function of each job's state by id that puts a run's stuck jobs back into the queue.

    sacct may report old states, so squeue is queried before a job is requeued.
    """
    refused: set[str] = set()

    def requeue(known: Mapping[str, str]) -> None:
        stuck = {job for job, state in known.items() if state in states}
        if stuck - refused:
            with contextlib.suppress(subprocess.SubprocessError, OSError):  # again next round
                _requeue_stuck(name, states, refused)

    return requeue


def _requeue_stuck(name: str, states: Sequence[str], refused: set[str]) -> None:
    """Requeue stuck jobs; add those that Slurm refuses to `refused` and skip them from then on."""
    stuck = f"--states={','.join(states)}"
    for line in _command("squeue", f"--name={name}", stuck, "-h", "-o", "%i %T").splitlines():
        job, state = line.split()
        if job in refused:
            continue
        try:
            _command("scontrol", "requeue", job)
        except subprocess.CalledProcessError as error:
            _report(
                f"Job {job} is {state} and Slurm does not take it back ({error.stderr.strip()}). "
                "Snakemake would wait for it for ever: stop it with Ctrl-C and start it again."
            )
            refused.add(job)
        else:
            _report(
                f"Job {job} was {state}: put back into the queue; it goes on after its last item."
            )


def _end_jobs(name: str, patience: float) -> list[str]:
    orphans = _queued(name)
    if not orphans:
        return []
    _report(
        f"Jobs {', '.join(orphans)} belong to a Snakemake that was killed; they are cancelled and "
        "submitted anew. What they have scored is kept."
    )
    _command("scancel", *orphans)
    end = time.monotonic() + patience
    while _queued(name):
        if time.monotonic() > end:
            raise EvaluationError(
                f"jobs {', '.join(orphans)} of a killed Snakemake do not end; examine them with "
                "`squeue`, end them with `scancel --signal=KILL`, and start again"
            )
        time.sleep(1.0)
    return orphans


def _queued(name: str) -> list[str]:
    """Return the ids of a run's jobs that are pending, running or completing."""
    return _command("squeue", f"--name={name}", "-h", "-o", "%i").split()


def _command(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


def _report(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


def _has_accounting() -> bool:
    """Return whether this cluster uses accounting; without it, any account name is accepted."""
    command = ("scontrol", "show", "config")
    shown = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False).stdout
    none = r"AccountingStorageType\s*=\s*(accounting_storage/none|\(null\))"
    return not re.search(none, shown)


def _accounts(internals: Internals) -> Iterator[str]:
    """Yield the accounts in the profile."""
    defaults = internals.part("resource_settings.default_resources") or {}
    for resources in (defaults, *internals.part("resource_settings.overwrite_resources").values()):
        if "slurm_account" in resources:
            yield str(value_of(resources["slurm_account"]))
