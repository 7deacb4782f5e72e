"""What Snakemake's Slurm executor leaves to its user: orphans, and jobs it would wait on for ever.

A Snakemake that is killed leaves its jobs running, and the next one submits them again: two jobs
would score the same checkpoint. So every run leaves a record of itself, and the next run ends the
jobs of those that died; what they scored is in the store.

A job pre-empted by cancellation stays PREEMPTED, and one whose node failed may stay NODE_FAIL; the
executor waits on both until somebody puts them back into the queue. That is done here, in the round
of queries that tells of them, so that the queue is asked once a round.

Once a round it also asks for a setting of the controller, which does not change: asked once here.

While the controller is away all queries of a round fail. The executor then forgets the jobs that it
asked about, and waits for ever; here they stay on its list.
"""

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence, Set
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from evaluation.errors import EvaluationError
from evaluation.files import read_text, write_json
from evaluation.orchestration.processes import Process, process

RECORDS = Path(".snakemake") / "slurm_runs"


@dataclass(frozen=True)
class Run:
    """A Snakemake process; `name` is the name of all its Slurm jobs."""

    name: str
    host: str
    pid: int
    started: str

    @property
    def alive(self) -> bool:
        """Whether it still runs; a process of another host is taken to."""
        return Process(self.host, self.pid, self.started).alive


def guard_run(workflow: Any) -> None:
    """Called as a run starts: ends the jobs of killed runs, then has this one's watched over.

    Raises:
        EvaluationError: if orphaned jobs can neither be found nor ended.
    """
    executor = getattr(workflow.scheduler, "_executor", None)
    name = getattr(executor, "run_uuid", None)
    if name is None:  # jobs run on this machine
        return
    keep_unanswered(executor)
    ask_setting_once(sys.modules[type(executor).__module__])
    # Without `requeue` the executor itself submits anew what a lost node had.
    requeue = workflow.executor_settings.requeue
    requeue_in_rounds(executor, ("PREEMPTED", "NODE_FAIL") if requeue else ("PREEMPTED",))
    end_orphans(RECORDS)
    run = Run(name=name, **asdict(process()))
    write_json(RECORDS / f"{name}.json", asdict(run))


def end_orphans(records: Path, patience: float = 120.0) -> list[str]:
    """Cancels the queued and running jobs of runs that died, and waits until they are gone.

    Returns the ids of the cancelled jobs. A cancelled scoring job gets SIGTERM and keeps all items
    that it has finished.

    Raises:
        EvaluationError: if Slurm does not answer, or if a job does not end within `patience` s.
    """
    ended = []
    for path in sorted(records.glob("*.json")):
        run = Run(**json.loads(read_text(path)))
        if run.alive:
            continue
        with _answering():
            ended += _end_jobs(run.name, patience)
        path.unlink(missing_ok=True)
    return ended


def keep_unanswered(executor: Any) -> None:
    """Keeps the jobs on the executor's list that a round of queries has told nothing about."""
    ended: set[str] = set()
    for method in ("report_job_success", "report_job_error"):
        setattr(executor, method, _noting(getattr(executor, method), ended))
    ask = executor.check_active_jobs

    async def check_active_jobs(jobs: list[Any]) -> AsyncIterator[Any]:
        running = set()
        async for job in ask(jobs):
            running.add(job.external_jobid)
            yield job
        for job in jobs:
            if job.external_jobid not in running | ended:
                yield job

    executor.check_active_jobs = check_active_jobs


def ask_setting_once(plugin: Any) -> None:
    """Keeps how long the controller remembers ended jobs, if it says so now."""
    age = plugin.get_min_job_age()
    if age is not None:
        plugin.get_min_job_age = lambda: age


def _noting(report: Callable[..., None], ended: set[str]) -> Callable[..., None]:
    def noting(job: Any, *arguments: Any, **keywords: Any) -> None:
        ended.add(job.external_jobid)
        report(job, *arguments, **keywords)

    return noting


def requeue_in_rounds(executor: Any, states: Sequence[str]) -> None:
    """Puts jobs back into the queue in whose round the executor was told one of these states.

    The executor asks by a function of its module; what that answers is looked at in passing.
    """
    plugin: Any = sys.modules[type(executor).__module__]
    ask = plugin.query_job_status
    refused: set[str] = set()

    async def query_job_status(*arguments: Any) -> tuple[dict[str, str] | None, float | None]:
        answer: tuple[dict[str, str] | None, float | None] = await ask(*arguments)
        stuck = {job for job, state in (answer[0] or {}).items() if state in states}
        if stuck - refused:
            # sacct may be behind the times, so the queue itself is asked before a job is touched.
            with contextlib.suppress(subprocess.SubprocessError, OSError):  # again next round
                refused.update(requeue_stuck(executor.run_uuid, states, refused))
        return answer

    plugin.query_job_status = query_job_status


def requeue_stuck(name: str, states: Sequence[str], refused: Set[str] = frozenset()) -> set[str]:
    """Requeues a run's jobs in these states but for `refused` ones; returns what Slurm refused."""
    found = set()
    lines = _command(
        "squeue", f"--name={name}", f"--states={','.join(states)}", "-h", "-o", "%i %T"
    )
    for line in lines.splitlines():
        job, state = line.split()
        if job in refused:
            continue
        try:
            _command("scontrol", "requeue", job)
        except subprocess.CalledProcessError as error:
            _say(
                f"Job {job} is {state} and Slurm does not take it back ({error.stderr.strip()}). "
                "Snakemake would wait for it for ever: stop it with Ctrl-C and start it again."
            )
            found.add(job)
        else:
            _say(f"Job {job} was {state}: put back into the queue; it goes on after its last item.")
    return found


def _end_jobs(name: str, patience: float) -> list[str]:
    orphans = _queued(name)
    if not orphans:
        return []
    _say(
        f"Jobs {', '.join(orphans)} belong to a Snakemake that was killed; they are cancelled and "
        "submitted anew. What they have scored is kept."
    )
    _command("scancel", *orphans)
    end = time.monotonic() + patience
    while _queued(name):
        if time.monotonic() > end:
            raise EvaluationError(
                f"jobs {', '.join(orphans)} of a killed Snakemake do not end; look at them with "
                "`squeue`, end them with `scancel --signal=KILL`, and start again"
            )
        time.sleep(1.0)
    return orphans


def _queued(name: str) -> list[str]:
    """Ids of a run's jobs that wait, run or are ending."""
    return _command("squeue", f"--name={name}", "-h", "-o", "%i").split()


@contextlib.contextmanager
def _answering() -> Iterator[None]:
    """Turns a failure of Slurm's commands into a sentence."""
    try:
        yield
    except (subprocess.SubprocessError, OSError) as error:
        said = getattr(error, "stderr", None) or str(error)
        raise EvaluationError(
            "a Snakemake was killed in this folder and Slurm does not say whether its jobs still "
            f"run ({said.strip()}); start again when `squeue` answers"
        ) from error


def _command(*command: str) -> str:
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    return done.stdout


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)
