"""Controller and Snakemake go away, disks fill up, caches and checkpoints change while jobs run."""

import os
import shutil
import signal
import time
from pathlib import Path

import yaml

from tests.slurm import cluster, layout
from tests.slurm.conftest import MakeRun
from tests.slurm.runs import BOTH, OTHER_STEP, STEP
from tests.workflow.world import World


def test_controller_away(make_run: MakeRun, undisturbed: Path) -> None:
    """Away for longer than five failed queries last; the job ends meanwhile."""
    run = make_run()
    run.score()
    pid = run.hold()
    cluster.stop_controller()
    os.kill(pid, signal.SIGCONT)
    time.sleep(75.0)
    cluster.start_controller()
    run.finish(undisturbed)
    assert len(run.jobs()) == 1


def test_snakemake_killed_and_started_again(make_run: MakeRun, undisturbed: Path) -> None:
    """The lock is explained; the orphaned job is ended before its successor starts."""
    run = make_run()
    run.score()
    run.hold()
    orphan = run.job()
    run.kill()
    run.score()
    assert run.wait() == 1
    assert "It can be removed with the --unlock argument" in run.log
    assert run.jobs() == {orphan: "RUNNING"}
    run.start("--unlock")
    assert run.wait() == 0, run.log
    run.score()
    run.finish(undisturbed)
    assert f"Jobs {orphan} belong to a Snakemake that was killed" in run.log
    assert list(run.jobs().values()) == ["CANCELLED", "COMPLETED"]


AT_ONCE = ("--retries", "0", "--latency-wait", "5")
"""Options with which a failure is final at once."""


def test_disk_full(make_run: MakeRun, undisturbed: Path) -> None:
    """One sentence, no half-written file; with room again the next run goes on."""
    results = layout.SMALL_DISK / "results"
    shutil.rmtree(results, ignore_errors=True)
    run = make_run(results=results)
    ballast = layout.SMALL_DISK / "ballast"
    try:
        run.score(*AT_ONCE)
        pid = run.hold()
        fill(ballast)
        os.kill(pid, signal.SIGCONT)
        assert run.wait() == 1
        assert "No space left on device" in run.log
        assert "an item that is in the score store is not scored again" in run.log
        run.assert_clean()
        assert run.stored() == run.kept
        ballast.unlink()
        run.score()
        run.finish(undisturbed)
    finally:
        ballast.unlink(missing_ok=True)
        shutil.rmtree(results, ignore_errors=True)


def fill(path: Path) -> None:
    """Takes all that is left on a disk."""
    with open(path, "wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return


def test_caches_vanish(make_run: MakeRun, undisturbed: Path, slow_world: World) -> None:
    """A job that still reads them fails, as does what grades them."""
    run = make_run()
    (cache,) = (slow_world.folder / "cache").iterdir()
    away = cache.with_name("away")
    run.score("--jobs", "1", *AT_ONCE, steps=BOTH)
    pid = run.hold(None)
    try:
        cache.rename(away)
        os.kill(pid, signal.SIGCONT)
        assert run.wait() == 1
    finally:
        away.rename(cache)
    assert "completed successfully, but some output files are missing" in run.log
    assert not any(run.tier(step).exists() for step in BOTH)
    run.kept = run.stored()
    run.score(steps=BOTH)
    run.finish(undisturbed)


def test_checkpoint_replaced(make_run: MakeRun, slow_world: World, tmp_path: Path) -> None:
    """The results are the new checkpoint's; nothing of the old one is taken for it."""
    folder = tmp_path / "ckpts"
    shutil.copytree(slow_world.folder / "ckpts" / "stage1", folder)
    stages = yaml.safe_load(slow_world.config.read_text())["stages"]
    stages["stage1"].update(checkpoints=str(folder), steps=[STEP])
    settings = {"stages": stages}
    run = make_run(settings=settings)
    run.score(*AT_ONCE)
    pid = run.hold()
    (folder / str(STEP)).rename(folder / "old")
    (folder / str(OTHER_STEP)).rename(folder / str(STEP))
    for path in (folder / str(STEP)).rglob("*"):
        os.utime(path)
    os.kill(pid, signal.SIGCONT)
    assert run.wait() == 1
    assert "replaced while it was being read or scored" in run.log
    assert not run.tier(STEP).exists()
    run.kept = run.stored()
    run.score()
    assert run.wait() == 0, run.log
    fresh = make_run("fresh", settings=settings)
    fresh.score()
    assert fresh.wait() == 0, fresh.log
    run.finish(fresh.checkpoints())
