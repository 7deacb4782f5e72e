"""A job ends before it is done: the next attempt goes on after its last stored item."""

import os
import signal
from pathlib import Path

import pytest

from tests.slurm import cluster
from tests.slurm.conftest import MakeRun
from tests.slurm.runs import STEP


def test_scancel(make_run: MakeRun, undisturbed: Path) -> None:
    run = make_run()
    run.score()
    pid = run.hold()
    first = run.job()
    cluster.slurm("scancel", first)
    cluster.wait_for("end of the cancelled job", lambda: pid not in run.scorers(), 5.0)
    run.finish(undisturbed)
    assert run.jobs()[first] == "CANCELLED"
    assert len(run.jobs()) == 2


@pytest.mark.parametrize("requeue", [True, False], ids=["requeue", "no-requeue"])
def test_node_lost(make_run: MakeRun, undisturbed: Path, requeue: bool) -> None:
    run = make_run(profile={} if requeue else {"slurm-requeue: true": "slurm-no-requeue: true"})
    run.score()
    run.hold()
    cluster.kill_node(run.node())
    run.finish(undisturbed)
    assert len(run.jobs()) == (1 if requeue else 2)


def test_node_taken_for_lost_while_its_job_runs_on(make_run: MakeRun, undisturbed: Path) -> None:
    """Two jobs score the same checkpoint at once; the first one wakes beside the second."""
    run = make_run()
    run.score()
    first = run.hold()
    node = run.node()
    cluster.hang_slurmd(node)

    def elsewhere() -> bool:
        return run.node() not in ("", node) and len(run.scorers(STEP)) == 2

    cluster.wait_for("the second copy", elsewhere, 240.0)
    os.kill(first, signal.SIGCONT)
    assert run.wait() == 0, run.log
    cluster.wait_for("end of the first copy", lambda: not run.scorers(), 120.0)
    cluster.hang_slurmd(node, signal.SIGCONT)
    run.finish(undisturbed)


def test_time_limit(make_run: MakeRun, undisturbed: Path) -> None:
    run = make_run(profile={"runtime: 60 * attempt": "runtime: 1 * attempt"})
    run.score()
    run.hold()
    first = run.job()
    cluster.wait_for("the time limit", lambda: run.jobs()[first] == "TIMEOUT", 240.0)
    run.finish(undisturbed)
    limits = [
        cluster.slurm("squeue", "--states=all", "-h", "-j", job, "-o", "%l") for job in run.jobs()
    ]
    assert limits == ["1:00", "2:00"]


def take_node(name: str) -> None:
    """A job of higher priority takes the whole node for a few seconds."""
    options = ["-p", "gpu", "-w", name, "--exclusive", "--mem=0", "-o", "/dev/null"]
    cluster.slurm("sbatch", *options, "--wrap", "sleep 5")


@pytest.mark.parametrize("partition", ["gpu_requeue", "gpu_cancel"])
def test_preempted(make_run: MakeRun, undisturbed: Path, partition: str) -> None:
    """Requeued by Slurm, or left PREEMPTED and then requeued by the run's own watch."""
    run = make_run(profile={'slurm_partition: "gpu"': f"slurm_partition: {partition}"})
    run.score()
    run.hold()
    take_node(run.node())
    run.finish(undisturbed)
    assert list(run.jobs().values()) == ["COMPLETED"]
    assert ("PREEMPTED: put back into the queue" in run.log) == (partition == "gpu_cancel")
