"""Two Snakemakes at once on one results folder, each in a folder of its own, and both end well."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from evaluation.records import read_record
from tests.histories.warm import run_python
from tests.workflow.paper import Paper
from tests.workflow.world import ROOT, World, copy_world


@pytest.fixture(scope="module")
def world(prefilled_world: World, tmp_path_factory: pytest.TempPathFactory) -> World:
    """The tiny world after a run in each of two folders, begun at once."""
    world = copy_world(prefilled_world, tmp_path_factory.mktemp("world"))
    (world.folder / "one").mkdir()
    (world.folder / "two").mkdir()
    with ThreadPoolExecutor(2) as pool:
        ended = [pool.submit(run, world, name) for name in ("one", "two")]
    for one in ended:
        code, said = one.result()
        assert code == 0, said[-6000:]
    return world


def run(world: World, folder: str, *arguments: str) -> tuple[int, str]:
    command = ["-m", "snakemake", *arguments, "--configfile", str(world.config), "--cores", "2"]
    command += ["-s", str(ROOT / "workflow/Snakefile")]
    done = run_python(command, world.folder / folder)
    return done.returncode, done.stdout + done.stderr


def test_both_end_well_and_nothing_is_left_to_do(world: World) -> None:
    code, said = run(world, "one", "-n")
    assert (code, "Nothing to be done" in said) == (0, True), said


def test_a_forced_run_leaves_what_was_there_of_a_checkpoint_that_is_gone(world: World) -> None:
    folder = world.results("stage1", "by_checkpoint", "step_10")
    before = read_record(folder, "score")
    shutil.rmtree(world.folder / "ckpts/stage1/10")
    code, said = run(world, "one", "--forcerun", "score_stage1", "--until", "score_stage1")
    assert code == 0, said  # it is no rule's output any more
    assert before is not None
    assert read_record(folder, "score") == before


def test_no_rule_removes_a_file_that_others_may_read(tmp_path: Path) -> None:
    """Snakemake removes an output before its job, and after one that failed, unless it is updated."""
    paper = Paper(tmp_path / "paper", {"one": {}, "two": {"bridge": {"stage": "one"}}})
    done = paper.snakemake("-n", "--verbose", "--forceall", "all", "prefill")
    outputs = [line for line in done.stdout.splitlines() if line.startswith("    output: ")]
    files = [file for line in outputs for file in line.removeprefix("    output: ").split(", ")]
    assert len(files) > 40, done.stdout + done.stderr
    own = [file for file in files if file.startswith(".snakemake/checked/")]
    assert {file for file in files if not file.endswith(" (update)")} == set(own)
