"""What Snakemake's Slurm executor leaves to its user: accounts, orphans, and jobs that are stuck.

A Snakemake that is killed leaves its jobs running, and the next one submits them again: two jobs
would score the same checkpoint. So every run leaves a record of itself, and the next run ends the
jobs of those that died; what they scored is in the store.

A job pre-empted by cancellation stays PREEMPTED, and one whose node failed may stay NODE_FAIL; the
executor waits on both until somebody puts them back into the queue, as is done here.
"""

import contextlib
import getpass
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
from evaluation.orchestration.internals import Internals, keep_unanswered, look_at_states
from evaluation.orchestration.processes import Process, process
from evaluation.regular_files import read_text
from evaluation.terminal_layout import show

_RECORDS = Path(".snakemake") / "slurm_runs"
"""A file for each run, called by the name of all its jobs, that says which process it is."""

_PLACEHOLDER = "YOUR_ACCOUNT"
"""The account in the profile as it is shipped."""


def check_cluster(workflow: Any) -> None:
    """Check, before a run submits its first job, that it can; do nothing without Slurm.

    Args:
        workflow: Snakemake's workflow.

    Raises:
        EvaluationError: When there is no sbatch, or the account is the placeholder and the cluster
            looks at accounts.
    """
    if Internals(workflow).slurm_executor is None:
        return
    if shutil.which("sbatch") is None:
        raise EvaluationError(
            "sbatch: no such command on this machine; start Snakemake on a login node of the "
            "cluster, or without `--profile slurm_profile` (with `--cores N`) to run all jobs here"
        )
    if _PLACEHOLDER in _accounts(workflow.resource_settings) and _accounts_count():
        yours = f" (yours: {', '.join(found)})" if (found := _known_accounts()) else ""
        raise EvaluationError(
            f"slurm_account is {_PLACEHOLDER}, as shipped: put the account that your jobs are "
            f"charged to{yours} into the profile's config.yaml, under default-resources"
        )


def guard_run(workflow: Any) -> None:
    """End the jobs of killed runs as a run starts, then have its own watched over.

    `end_orphans` raises EvaluationError where orphaned jobs can neither be found nor ended.

    Args:
        workflow: Snakemake's workflow.
    """
    executor = Internals(workflow).slurm_executor
    if executor is None:
        return
    keep_unanswered(executor)
    # Without `requeue` the executor itself submits anew what a lost node had.
    requeue = workflow.executor_settings.requeue
    states = ("PREEMPTED", "NODE_FAIL") if requeue else ("PREEMPTED",)
    look_at_states(executor, requeuing(executor.run_uuid, states))
    end_orphans(_RECORDS)
    write_json(_RECORDS / f"{executor.run_uuid}.json", asdict(process()))


def end_orphans(records: Path, patience: float = 120.0) -> list[str]:
    """Cancel the queued and running jobs of runs that died, and wait until they have ended.

    A cancelled scoring job gets SIGTERM and keeps all items that it has finished. EvaluationError is
    raised where Slurm does not answer, or a job does not end.

    Args:
        records: Folder with a file for each run.
        patience: Seconds in which a run's jobs must end.

    Returns:
        Ids of the cancelled jobs.
    """
    ended = []
    for path in sorted(records.glob("*.json")):
        content = json.loads(read_text(path))
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
    """Return a function that puts a run's stuck jobs back into the queue.

    sacct may be behind the times, so the queue itself is asked before a job is touched.

    Args:
        name: The name that all jobs of the run have.
        states: States of a stuck job.

    Returns:
        A function of the state of each job by its id.
    """
    refused: set[str] = set()

    def requeue(known: Mapping[str, str]) -> None:
        stuck = {job for job, state in known.items() if state in states}
        if stuck - refused:
            with contextlib.suppress(subprocess.SubprocessError, OSError):  # again next round
                _requeue_stuck(name, states, refused)

    return requeue


def _requeue_stuck(name: str, states: Sequence[str], refused: set[str]) -> None:
    """Put stuck jobs back, but for those that Slurm has refused, which are noted."""
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
    """Return the ids of a run's jobs that wait, run or are ending."""
    return _command("squeue", f"--name={name}", "-h", "-o", "%i").split()


def _command(*command: str, seconds: float = 60) -> str:
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=seconds)
    return done.stdout


def _report(sentence: str) -> None:
    show(sentence, sys.stderr)


def _known_accounts() -> list[str]:
    """Return the accounts that this user may charge, as far as Slurm reports them."""
    user = getpass.getuser()
    listed = _output("sacctmgr", "-n", "-P", "-s", "list", "user", user, "format=account")
    return sorted(set(listed.split()))


def _accounts(settings: Any) -> Iterator[str]:
    for resources in (settings.default_resources or {}, *settings.overwrite_resources.values()):
        if "slurm_account" in resources:
            yield str(resources["slurm_account"].raw)


def _accounts_count() -> bool:
    """Return whether this cluster keeps accounts; without accounting any name will do."""
    none = r"AccountingStorageType\s*=\s*(accounting_storage/none|\(null\))"
    return not re.search(none, _output("scontrol", "show", "config"))


def _output(*command: str) -> str:
    """Return what a command prints; nothing where it fails."""
    try:
        return _command(*command, seconds=20)
    except (OSError, subprocess.SubprocessError):
        return ""
