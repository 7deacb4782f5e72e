"""Snakemake and the controller go away, in turn; two Snakemakes at once."""

import os
import signal
import time
from pathlib import Path

from tests.slurm import cluster
from tests.slurm.conftest import MakeRun
from tests.slurm.runs import STEP, Outcome


def test_controller_away(make_run: MakeRun, undisturbed: Outcome) -> None:
    """Away for longer than five failed queries last; the job ends meanwhile."""
    run = make_run()
    run.score()
    pid = run.hold()
    kept = run.stored()
    cluster.stop_controller()
    os.kill(pid, signal.SIGCONT)
    time.sleep(75.0)
    cluster.start_controller()
    begin = time.monotonic()
    assert run.wait() == 0, run.log
    print(f"finished {time.monotonic() - begin:.0f} s after the controller came back")
    assert len(run.jobs()) == 1
    run.assert_undisturbed(undisturbed, kept)


def test_snakemake_killed_and_started_again(make_run: MakeRun, undisturbed: Outcome) -> None:
    """The lock is explained; the orphaned job is ended before its successor starts."""
    run = make_run()
    run.score()
    run.hold()
    kept = run.stored()
    orphan = run.job()
    run.kill()
    run.score()
    assert run.wait() == 1
    assert "It can be removed with the --unlock argument" in run.log
    assert run.jobs() == {orphan: "RUNNING"}
    run.start("--unlock")
    assert run.wait() == 0, run.log
    run.score()
    assert run.wait() == 0, run.log
    assert f"Jobs {orphan} belong to a Snakemake that was killed" in run.log
    assert list(run.jobs().values()) == ["CANCELLED", "COMPLETED"]
    run.assert_undisturbed(undisturbed, kept)


def test_two_snakemakes_write_the_same_results(
    make_run: MakeRun, undisturbed: Outcome, tmp_path: Path
) -> None:
    """Two clones with one results folder: both score at once, neither harms the other."""
    one, two = (make_run(name, results=tmp_path / "shared") for name in ("one", "two"))
    one.score()
    pid = one.hold()
    kept = one.stored()
    two.score()
    cluster.wait_for("the other's job", lambda: len(one.scorers(STEP)) == 2, 240.0)
    os.kill(pid, signal.SIGCONT)
    for run in (one, two):
        assert run.wait() == 0, run.log
        run.assert_undisturbed(undisturbed, kept)
