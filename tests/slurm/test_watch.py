"""The watcher on a real cluster, beside a training run that saves its checkpoints."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import yaml

from tests.slurm.cluster import slurm
from tests.slurm.conftest import MakeRun
from tests.slurm.runs import FAST_POLLS, Run
from tests.watching.conftest import write_whole
from tests.watching.trainer import train
from tests.workflow.world import ROOT, World

TRAINED, KILLED = (10, 20, 30), 40
OPTIONS = "--stage stage1 --interval 1 --quiet 3 --until-step 30 --give-up 0.1".split()


def test_beside_a_writer(make_run: MakeRun, slow_world: World, tmp_path: Path) -> None:
    """Every complete checkpoint is scored once, by a job of its own, no incomplete one ever."""
    whole, new = tmp_path / "whole", tmp_path / "new"
    write_whole(slow_world, whole)
    new.mkdir()
    stages = yaml.safe_load(slow_world.config.read_text())["stages"]
    stages["stage1"].update(checkpoints=str(new), steps="all")
    run = make_run(settings={"stages": stages})
    trainer = threading.Thread(target=train, args=(whole, new, 4.5))
    trainer.start()
    done = watch(run)
    trainer.join()
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("evaluated\n") == len(TRAINED), done.stdout
    assert "step 30 is evaluated: the end" in done.stdout
    assert "stage1 step 40: skipped: " in watch(run, "--once").stdout
    jobs = [job for step in (*TRAINED, KILLED) for job in run.jobs(step)]
    assert len(jobs) == len(TRAINED)
    for step in TRAINED:
        assert run.tier(step).is_file()
        assert list(run.jobs(step).values()) == ["COMPLETED"]
    assert slurm("squeue", "-h", "-t", "running,pending") == ""
    run.assert_clean()


def watch(run: Run, *options: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "evaluation", "watch", "--config", "config.yaml"]
    return subprocess.run(
        [*command, *OPTIONS, *options, "--", "--profile", "profile", *FAST_POLLS],
        cwd=run.folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
