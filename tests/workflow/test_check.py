"""The check before a stage's scoring jobs, and two Snakemakes on one results folder."""

import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

from evaluation.records import read_record
from tests.doctor.test_examine import TASK
from tests.histories.warm import run_python, well
from tests.workflow.paper import Paper
from tests.workflow.world import ROOT, World, build_world, copy_world, flip


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    world = build_world(tmp_path_factory.mktemp("checked"))
    well(world.snakemake("prefill"))
    return world


def planned(world: World, *targets: str) -> dict[str, int]:
    """How often a dry run would run each rule."""
    done = well(world.snakemake(*targets, "-n", "--quiet", "rules"))
    rows = re.findall(r"^(\w+) +(\d+)$", done.stdout + done.stderr, flags=re.MULTILINE)
    return {name: int(count) for name, count in rows if name != "total"}


def test_what_stops_every_job_stops_before_the_first(world: World) -> None:
    whole = world.config.read_text()
    suite = world.folder / "suites/asked.yaml"
    suite.write_text(yaml.safe_dump({"extends": "base", "generation_tasks": {"sums": TASK}}))
    world.change_stage("stage1", suites=["asked"])
    world.change(generation={"engine": "vllm", "python": "nowhere/python"})
    done = world.snakemake("stage1")
    status = world.evaluation("status").stdout
    world.config.write_text(whole)
    assert done.returncode == 1
    assert "nowhere/python; install vLLM" in done.stdout + done.stderr
    assert "nowhere/python; install vLLM" in world.results("stage1/eval_logs/check.log").read_text()
    assert not world.results("stage1", "by_checkpoint").exists()
    assert not world.results("scores").exists()
    assert "What failed:\nstage1 check: faults in answers" in done.stderr
    assert "no job of stage1 was submitted" in status


def test_an_objective_at_nothing_stops_before_anything_runs(world: World) -> None:
    whole = world.config.read_text()
    objective = {"tier": "tier2", "group": "nowhere", "want": "keep", "margin": 0.1}
    world.change_stage("stage1", objective=[objective])
    runs = [world.snakemake(target, "-n") for target in ("prefill", "stage1")]
    world.config.write_text(whole)
    for done in runs:
        assert done.returncode == 1
        assert "stages.stage1.objective.0: group: tier2" in done.stdout
        assert "has no group 'nowhere'" in done.stdout


def test_a_damaged_cache_is_made_anew(world: World) -> None:
    tokens = next((world.folder / "cache").rglob("packed_tokens.pt"))
    whole = tokens.read_bytes()
    flip(tokens)
    assert planned(world, "prefill")["prefill_slice"] == 1
    well(world.snakemake("prefill"))
    assert tokens.read_bytes() == whole
    assert planned(world, "prefill") == {}


def test_one_broken_checkpoint_is_named_and_the_others_are_scored(world: World) -> None:
    """It is checked again with the next run, and once all is scored not any more."""
    weight = world.weight("stage1/10", "o_proj")
    whole = weight.read_bytes()
    weight.write_bytes(whole[:-50])
    done = world.snakemake("stage1", "--keep-going")
    assert done.returncode == 1
    assert re.search(r"check_stage1: checkpoints, stage1/10: \S+: ends early", done.stderr)
    assert world.results("stage1/by_checkpoint/step_20/tier3_cf.json").is_file()
    assert not world.results("stage1/by_checkpoint/step_10/tier3_cf.json").exists()
    weight.write_bytes(whole)
    again = planned(world, "stage1")
    assert (again["check_stage1"], again["score_stage1"]) == (1, 1)
    well(world.snakemake("stage1"))
    assert planned(world, "stage1") == {}
    assert not list(world.folder.glob(".snakemake/checked/*/*"))


def test_a_new_step_is_checked_and_nothing_else_is_scored_again(world: World) -> None:
    own = yaml.safe_load(world.config.read_text())["stages"]["stage1"]
    world.change(stages={"stage1": own | {"steps": "all"}})
    assert planned(world, "stage1") == {}
    shutil.copytree(world.folder / "ckpts/stage1/20", world.folder / "ckpts/stage1/30")
    (world.folder / "ckpts/stage1/latest.txt").write_text("30")
    finished = str(world.results("stage1/by_checkpoint/step_20/tier3_cf.json"))
    assert planned(world, finished) == {}
    new = planned(world, "stage1")
    costly = {name: count for name, count in new.items() if name.startswith(("check", "score"))}
    assert costly == {"check_stage1": 1, "score_stage1": 1}


@pytest.fixture(scope="module")
def begun_twice(prefilled_world: World, tmp_path_factory: pytest.TempPathFactory) -> World:
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


def test_both_end_well_and_nothing_is_left_to_do(begun_twice: World) -> None:
    code, said = run(begun_twice, "one", "-n")
    assert (code, "Nothing to be done" in said) == (0, True), said


def test_a_forced_run_leaves_what_was_there_of_a_checkpoint_that_is_gone(
    begun_twice: World,
) -> None:
    world = begun_twice
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
