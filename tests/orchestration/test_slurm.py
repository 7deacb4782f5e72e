"""The guard over Slurm jobs, with stand-ins for Slurm's commands."""

import asyncio
import json
import os
import socket
import sys
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

from evaluation.errors import EvaluationError
from evaluation.orchestration.internals import SILENT_ROUNDS, keep_unanswered
from evaluation.orchestration.processes import Process, process
from evaluation.orchestration.slurm import end_orphans, requeuing

DEAD = Process(socket.gethostname(), os.getpid(), "another start")

SQUEUE = """#!/bin/sh
echo "$@" >> "$QUEUE/asked"
case "$*" in
*--states=*) cat "$QUEUE/stuck" ;;
*--name=dead*) cat "$QUEUE/jobs" ;;
esac
"""
SCANCEL = '#!/bin/sh\necho "$@" >> "$QUEUE/cancelled"\n: > "$QUEUE/jobs"\n'
SCONTROL = """#!/bin/sh
[ "$2" = 8 ] && { echo "Job has already finished" >&2; exit 1; }
echo "$@" >> "$QUEUE/requeued"
"""


@pytest.fixture
def queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose files are the queue of stand-in commands."""
    for name, text in (("squeue", SQUEUE), ("scancel", SCANCEL), ("scontrol", SCONTROL)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("QUEUE", str(tmp_path))
    return tmp_path


def record(folder: Path, name: str, run: Process) -> Path:
    path = folder / "runs" / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(asdict(run)))
    return path


def test_jobs_of_a_dead_run_are_cancelled_and_its_record_goes(
    queue: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = record(queue, "dead", DEAD)
    (queue / "jobs").write_text("5\n6\n")
    assert end_orphans(queue / "runs") == ["5", "6"]
    assert (queue / "cancelled").read_text() == "5 6\n"
    assert "Jobs 5, 6 belong to a Snakemake that was killed" in capsys.readouterr().err
    assert not path.exists()


def test_runs_that_live_or_live_elsewhere_are_left_alone(queue: Path) -> None:
    away = Process("another-login-node", os.getpid(), "")
    paths = [record(queue, "dead-not", process()), record(queue, "dead-away", away)]
    (queue / "jobs").write_text("5\n")
    assert end_orphans(queue / "runs") == []
    assert all(path.exists() for path in paths)
    assert not (queue / "cancelled").exists()


def test_a_silent_controller_stops_the_run_in_one_sentence(queue: Path) -> None:
    record(queue, "dead", DEAD)
    (queue / "squeue").write_text(
        "#!/bin/sh\necho 'Unable to contact slurm controller' >&2; exit 1"
    )
    with pytest.raises(EvaluationError, match=r"Unable to contact slurm controller.*start again"):
        end_orphans(queue / "runs")


def test_orphans_that_do_not_end_are_named(queue: Path) -> None:
    record(queue, "dead", DEAD)
    (queue / "jobs").write_text("5\n")
    (queue / "scancel").write_text("#!/bin/sh\n")
    with pytest.raises(EvaluationError, match="jobs 5 of a killed Snakemake do not end"):
        end_orphans(queue / "runs", patience=0.0)


@dataclass(frozen=True)
class Job:
    """One of Snakemake's, and its output."""

    output: tuple[str, ...]


@dataclass(frozen=True)
class Submitted:
    external_jobid: str
    job: Job = Job(())


class Executor:
    """Asks like Snakemake's, which drops jobs that a round of queries does not report."""

    run_uuid = "run"

    def __init__(self) -> None:
        self.succeeded: list[str] = []
        self.failed: dict[str, str] = {}

    def run_jobs(self, jobs: list[Job]) -> None:
        pass

    def report_job_success(self, job: Submitted) -> None:
        self.succeeded.append(job.external_jobid)

    def report_job_error(self, job: Submitted, msg: str = "") -> None:
        self.failed[job.external_jobid] = msg

    async def check_active_jobs(self, jobs: list[Submitted]) -> AsyncIterator[Submitted]:
        states, _ = await vars(sys.modules[__name__])["query_job_status"]("squeue")
        for job in jobs:
            state = (states or {}).get(job.external_jobid)
            if state == "COMPLETED":
                self.report_job_success(job)
            elif state is not None:
                yield job


def round_of(executor: Executor, jobs: list[Submitted]) -> list[Submitted]:
    async def run() -> list[Submitted]:
        return [job async for job in executor.check_active_jobs(jobs)]

    return asyncio.run(run())


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What the executor's own query answers, as a function of its module; empty: it fails."""
    states: dict[str, str] = {}

    async def query_job_status(command: str) -> tuple[dict[str, str] | None, float | None]:
        return (states, 0.1) if states else (None, None)

    here = sys.modules[__name__]
    monkeypatch.setattr(here, "query_job_status", query_job_status, raising=False)
    return states


def ignore(states: object) -> None:
    pass


def test_jobs_stay_on_the_list_while_the_queue_does_not_answer(told: dict[str, str]) -> None:
    executor = Executor()
    keep_unanswered(executor, ignore)
    jobs = [Submitted("1"), Submitted("2")]
    for _ in range(2 * SILENT_ROUNDS):
        assert round_of(executor, jobs) == jobs
    told.update({"1": "COMPLETED", "2": "RUNNING"})
    assert round_of(executor, jobs) == [Submitted("2")]
    assert (executor.succeeded, executor.failed) == (["1"], {})


def test_a_job_that_the_controller_has_forgotten_ended_as_its_outputs_say(
    told: dict[str, str], tmp_path: Path
) -> None:
    """Its outputs of an earlier run do not count."""
    done, lost = (Job((str(tmp_path / name),)) for name in ("done", "lost"))
    for path in tmp_path / "done", tmp_path / "lost":
        path.write_text("before")
    executor = Executor()
    keep_unanswered(executor, ignore)
    executor.run_jobs([done, lost])
    jobs = [Submitted("1", done), Submitted("2", lost), Submitted("3")]
    told.update({"1": "RUNNING", "3": "RUNNING"})
    (tmp_path / "done").write_text("behind it")
    assert {*round_of(executor, jobs)} == {*jobs}
    del told["1"]
    for _ in range(SILENT_ROUNDS - 1):
        jobs = round_of(executor, jobs)
    assert executor.failed == {"2": "Slurm has forgotten job 2, which did not write its outputs."}
    assert round_of(executor, jobs) == [Submitted("3")]
    assert executor.succeeded == ["1"]


def query() -> dict[str, str] | None:
    """A round of the executor."""
    answer = asyncio.run(vars(sys.modules[__name__])["query_job_status"]("squeue"))
    return answer[0]  # type: ignore[no-any-return]


def test_a_round_without_stuck_jobs_asks_nothing_more(queue: Path, told: dict[str, str]) -> None:
    keep_unanswered(Executor(), requeuing("run", ["PREEMPTED"]))
    assert query() is None
    told.update({"7": "RUNNING", "8": "NODE_FAIL"})
    assert query() == told
    assert not (queue / "asked").exists()


def test_a_round_that_tells_of_stuck_jobs_requeues_them(
    queue: Path, told: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The queue is asked again first; a job that Slurm refuses is named, and not asked about any more."""
    keep_unanswered(Executor(), requeuing("run", ["PREEMPTED"]))
    told.update({"7": "PREEMPTED", "8": "PREEMPTED", "9": "PREEMPTED"})
    (queue / "stuck").write_text("7 PREEMPTED\n8 PREEMPTED\n")
    assert query() == told
    assert (queue / "requeued").read_text() == "requeue 7\n"
    assert "Job 8 is PREEMPTED and Slurm does not take it back" in capsys.readouterr().err
    del told["7"], told["9"]
    query()
    (asked,) = (queue / "asked").read_text().splitlines()
    assert "--name=run" in asked


def test_a_silent_controller_does_not_end_the_round(queue: Path, told: dict[str, str]) -> None:
    (queue / "squeue").write_text("#!/bin/sh\nexit 1")
    keep_unanswered(Executor(), requeuing("run", ["PREEMPTED"]))
    told["7"] = "PREEMPTED"
    assert query() == told
