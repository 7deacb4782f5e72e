"""The check before a stage's scoring jobs, and what Snakemake may not remove."""

import re
import shutil
from pathlib import Path

import pytest
import yaml

from tests.doctor.test_doctor import TASK
from tests.histories.warm import well
from tests.workflow.paper import Paper, refused
from tests.workflow.world import World, build_world


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
    suite = world.folder / "suites/asked.yaml"
    suite.write_text(yaml.safe_dump({"extends": "base", "generation_tasks": {"sums": TASK}}))
    with world.restored():
        world.change_stage("stage1", suites=["asked"])
        world.change(generation={"engine": "vllm", "python": "nowhere/python"})
        said = refused(world.snakemake("stage1"))
        status = world.evaluation("status").stdout
    assert "nowhere/python; install vLLM" in said
    assert "nowhere/python; install vLLM" in world.results("stage1/eval_logs/check.log").read_text()
    assert not world.results("stage1", "by_checkpoint").exists()
    assert not world.results("scores").exists()
    assert "What failed:\nstage1 check: faults in answers" in said
    assert "no job of stage1 was submitted" in status


def test_an_objective_at_nothing_stops_before_anything_runs(world: World) -> None:
    objective = {"tier": "tier2", "group": "nowhere", "want": "keep", "margin": 0.1}
    with world.restored():
        world.change_stage("stage1", objective=[objective])
        for target in ("prefill", "stage1"):
            said = refused(world.snakemake(target, "-n"))
            assert "stages.stage1.objective.0: group: no group 'nowhere'" in said


def test_a_step_that_is_not_asked_for_is_scored_only_if_it_is_there(world: World) -> None:
    """As a target of its own: `steps` are 10 and 20."""
    target = str(world.results("stage1/by_checkpoint/step_200/tier3_cf.json"))
    absent = world.snakemake("-n", target).stdout
    assert f"steps: {world.folder}/ckpts/stage1/200: no checkpoint there" in absent
    checkpoints = world.folder / "ckpts/stage1"
    shutil.copytree(checkpoints / "20", checkpoints / "200")
    found = planned(world, target)
    shutil.rmtree(checkpoints / "200")
    assert found["score_stage1"] == 1


def test_one_broken_checkpoint_is_named_and_the_others_are_scored(world: World) -> None:
    """It is checked again with the next run, and once all is scored not any more."""
    weight = world.weight("stage1/10", "o_proj")
    whole = weight.read_bytes()
    weight.write_bytes(whole[:-50])
    done = world.snakemake("stage1", "--keep-going")
    assert done.returncode == 1
    assert re.search(r"check_stage1: checkpoints: .*ends early", done.stderr)
    assert world.results("stage1/by_checkpoint/step_20/tier3_cf.json").is_file()
    assert not world.results("stage1/by_checkpoint/step_10/tier3_cf.json").exists()
    weight.write_bytes(whole)
    again = planned(world, "stage1")
    assert (again["check_stage1"], again["score_stage1"]) == (1, 1)
    well(world.snakemake("stage1"))
    assert planned(world, "stage1") == {}
    assert not list(world.folder.glob(".snakemake/checked/*/*"))


def test_no_rule_removes_a_file_that_others_may_read(tmp_path: Path) -> None:
    """Snakemake removes an output before its job, and after one that failed, unless it is updated."""
    paper = Paper(tmp_path / "paper", {"one": {}, "two": {"bridge": {"stage": "one"}}})
    done = paper.snakemake("-n", "--verbose", "--forceall", "all", "prefill")
    outputs = [line for line in done.stdout.splitlines() if line.startswith("    output: ")]
    files = [file for line in outputs for file in line.removeprefix("    output: ").split(", ")]
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(files) > 40, done.stdout
    own = [file for file in files if file.startswith(".snakemake/checked/")]
    assert {file for file in files if not file.endswith(" (update)")} == set(own)
