"""Several checkpoints in one job: the same results, and what failed is named."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.histories.oracle import differences_of
from tests.histories.warm import wait_for, well
from tests.workflow.paper import refused
from tests.workflow.world import ROOT, World

BOTH = ("score", "--stage", "stage1", "--step", "10", "20")
DIES = "kill -9 $PPID"
"""A stage's command that kills the process which runs it."""


@pytest.fixture
def world(prefilled_world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """The same with results of its own, on one thread."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    return with_own_results(prefilled_world, tmp_path)


def with_own_results(world: World, folder: Path) -> World:
    folder.mkdir(exist_ok=True)
    other = World(folder)
    other.config.write_text(world.config.read_text())
    other.change(results=str(other.results()))
    return other


def own_checkpoints(world: World) -> Path:
    """Copies stage1's checkpoints into the world; returns their folder."""
    folder = world.folder / "ckpts"
    shutil.copytree(world.stages["stage1"]["checkpoints"], folder)
    world.change_stage("stage1", checkpoints=str(folder))
    return folder


def of_step(world: World, step: int, stage: str = "stage1") -> Path:
    return world.results(stage, "by_checkpoint", f"step_{step}")


def log_of(world: World, name: str) -> str:
    return world.results(name.partition("_")[0], "eval_logs", "slurm", f"{name}.log").read_text()


def planned(world: World, count: int | str, *targets: str) -> subprocess.CompletedProcess[str]:
    return world.snakemake(*targets, "-n", "--set-resources", f"score_stage1:checkpoints={count}")


def rules(done: subprocess.CompletedProcess[str]) -> set[str]:
    """Names of the scoring rules that a dry run lists."""
    lines = (well(done).stdout + done.stderr).splitlines()
    return {line.split()[0].rstrip(":") for line in lines if line.startswith("score_stage1")}


def test_the_same_results_as_one_job_each(
    prefilled_world: World, world: World, tmp_path: Path
) -> None:
    """One process scores both, and the second as if it were the first."""
    single = with_own_results(world, tmp_path / "single")
    for step in ("10", "20"):
        well(single.evaluation("score", "--stage", "stage1", "--step", step))
    targets = [str(of_step(world, step) / "tier2_ppl.json") for step in (10, 20)]
    well(world.snakemake(*targets, "--set-resources", "score_stage1:checkpoints=2"))
    for step in (10, 20):
        assert len([*of_step(world, step).glob("tier*")]) == 2 * 3
        assert list(differences_of(of_step(world, step), of_step(single, step))) == []
        assert f"step {step}: done in" in log_of(world, "stage1_from_10")
    assert "loaded" in log_of(world, "stage1_step_20")
    assert "Nothing to be done" in planned(world, 2, targets[1]).stdout


def test_a_process_that_dies_is_replaced(world: World) -> None:
    """Each step kills its process; the second finds a new one."""
    world.change_stage("stage1", command=DIES)
    said = refused(world.evaluation(*BOTH))
    assert "these failed: 10, 20;" in said
    assert said.count("exit code -9") == 2


def test_sigterm_reaches_all_within_five_seconds(world: World) -> None:
    job = subprocess.Popen(
        [sys.executable, "-m", "evaluation", *BOTH],
        cwd=ROOT,
        env={**os.environ, "EVALUATION_CONFIG": str(world.config), "CUDA_VISIBLE_DEVICES": "0,1"},
        stderr=subprocess.DEVNULL,
    )
    logs = [world.results("stage1", "eval_logs", "slurm", f"stage1_step_{n}.log") for n in (10, 20)]
    wait_for("both logs", lambda: all(log.exists() for log in logs), 60.0)
    workers = psutil.Process(job.pid).children()
    assert len(workers) == 2
    begin = time.monotonic()
    job.send_signal(signal.SIGTERM)
    assert job.wait(timeout=10) == 143
    assert time.monotonic() - begin < 5.0
    assert not any(worker.is_running() for worker in workers)


def test_runs_of_steps_keep_when_later_ones_appear(world: World) -> None:
    folder = own_checkpoints(world)
    for step in (30, 40, 50):
        shutil.copytree(folder / "10", folder / str(step))
    world.change(stages={"stage1": {**world.stages["stage1"], "steps": "all"}})
    assert rules(planned(world, 1, "stage1")) == {"score_stage1"}
    runs = {"score_stage1_from_10", "score_stage1_from_30", "score_stage1_from_50"}
    assert rules(planned(world, 2, "stage1")) == runs
    shutil.copytree(folder / "10", folder / "60")
    shutil.copytree(folder / "10", folder / "70")
    assert rules(planned(world, 2, "stage1")) == {*runs, "score_stage1_from_70"}
    wanted = str(of_step(world, 40) / "tier3_cf.json")
    assert rules(planned(world, 2, wanted)) == {"score_stage1_from_30"}


def test_a_run_whose_checkpoints_are_not_all_there_is_scored_singly(world: World) -> None:
    shutil.rmtree(own_checkpoints(world) / "20")
    wanted = str(of_step(world, 10) / "tier3_cf.json")
    assert rules(planned(world, 2, wanted)) == {"score_stage1"}


@pytest.mark.parametrize("count", [0, "many"])
def test_a_wrong_number_is_one_sentence(world: World, count: int | str) -> None:
    said = refused(planned(world, count, "stage1"))
    assert "score_stage1: checkpoints is" in said
