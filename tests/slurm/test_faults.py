"""What goes wrong on a cluster: nothing that was stored is lost, or made twice."""

import os
import signal
import time
from pathlib import Path

import pytest

from tests.histories.warm import wait_for
from tests.slurm.cluster import end, slurm, start, succeeds
from tests.slurm.conftest import MakeRun


def test_scancel(make_run: MakeRun, undisturbed: Path) -> None:
    run = make_run()
    run.hold()
    slurm("scancel", run.job())
    run.finish(undisturbed)
    assert list(run.jobs().values()) == ["CANCELLED", "COMPLETED"]


def test_node_lost(make_run: MakeRun, undisturbed: Path) -> None:
    run = make_run()
    run.hold()
    end(run.node())
    run.finish(undisturbed)
    assert len(run.jobs()) == 1


def test_time_limit(make_run: MakeRun, undisturbed: Path) -> None:
    run = make_run(profile={"runtime: 60 * attempt": "runtime: 1 * attempt"})
    run.hold()
    first = run.job()
    wait_for("the time limit", lambda: run.jobs()[first] == "TIMEOUT", 240.0)
    run.finish(undisturbed)
    limits = [slurm("squeue", "--states=all", "-h", "-j", job, "-o", "%l") for job in run.jobs()]
    assert limits == ["1:00", "2:00"]


@pytest.mark.parametrize("partition", ["gpu_requeue", "gpu_cancel"])
def test_preempted(make_run: MakeRun, undisturbed: Path, partition: str) -> None:
    """Requeued by Slurm, or left PREEMPTED and then put back into the queue by the run."""
    run = make_run(profile={'slurm_partition: "gpu"': f"slurm_partition: {partition}"})
    run.hold()
    options = ["-p", "gpu", "-w", run.node(), "--exclusive", "--mem=0", "-o", "/dev/null"]
    slurm("sbatch", *options, "--wrap", "sleep 5")
    run.finish(undisturbed)
    assert list(run.jobs().values()) == ["COMPLETED"]


def test_controller_away(make_run: MakeRun, undisturbed: Path) -> None:
    """Without accounting the executor waits for ever; started again, nothing is left to score."""
    run = make_run()
    pid = run.hold()
    end("slurmctld", signal.SIGTERM)
    os.kill(pid, signal.SIGCONT)
    time.sleep(75.0)
    start("slurmctld")
    wait_for("the controller", lambda: succeeds("squeue"), 60.0)
    wait_for("end of the job", lambda: run.jobs()[run.job()] == "COMPLETED", 240.0)
    run.start_again()
    run.finish(undisturbed)
    assert len(run.jobs()) == 1


def test_snakemake_killed_and_started_again(make_run: MakeRun, undisturbed: Path) -> None:
    """The orphaned job is ended before its successor starts."""
    run = make_run()
    run.hold()
    run.start_again()
    run.finish(undisturbed)
    assert list(run.jobs().values()) == ["CANCELLED", "COMPLETED"]
