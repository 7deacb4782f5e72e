"""Snakemake and the controller go away, in turn; two Snakemakes at once."""

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from tests.slurm import cluster
from tests.slurm.conftest import MakeRun
from tests.slurm.runs import Run

Outcome = dict[str, Any]


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
    assert run.outcome() == undisturbed
    now = run.stored()
    assert {name: now[name] for name in kept} == kept
    assert len(run.jobs()) == 1
    run.assert_clean()


def test_snakemake_killed_and_started_again(make_run: MakeRun, undisturbed: Outcome) -> None:
    """The lock is explained; the orphaned job is ended before its successor starts."""
    run = make_run()
    run.score(steps=(10,))
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
    assert run.outcome() == undisturbed
    now = run.stored()
    assert {name: now[name] for name in kept} == kept
    run.assert_clean()


def test_a_second_snakemake_in_the_same_folder_is_refused(
    make_run: MakeRun, undisturbed: Outcome
) -> None:
    run = make_run()
    run.score()
    pid = run.hold()
    second = subprocess.run(
        run.command(str(run.tier(10))), cwd=run.folder, capture_output=True, text=True, check=False
    )
    assert second.returncode == 1
    assert "Directory cannot be locked" in second.stderr
    os.kill(pid, signal.SIGCONT)
    assert run.wait() == 0, run.log
    assert run.outcome() == undisturbed


def test_two_snakemakes_write_the_same_results(
    make_run: MakeRun, undisturbed: Outcome, tmp_path: Path
) -> None:
    """Two clones with one results folder: both score, neither harms the other."""
    runs: list[Run] = [make_run(name, results=tmp_path / "shared") for name in ("one", "two")]
    for run in runs:
        run.score()
    for run in runs:
        assert run.wait() == 0, run.log
    assert runs[0].outcome() == undisturbed
    runs[0].assert_clean()
