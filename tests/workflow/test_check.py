"""What stops a run before it costs anything, and what stops one checkpoint alone."""

import re

import pytest
import yaml

from tests.doctor.test_doctor import TASK
from tests.histories.warm import well
from tests.workflow.world import World, build_world, refused


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
        well(world.snakemake("prefill"))
        said = refused(world.snakemake("stage1"))
    assert "nowhere/python; install vLLM" in world.results("stage1/eval_logs/check.log").read_text()
    assert not world.results("stage1", "by_checkpoint").exists()
    assert "What failed:\n  stage1: faults in answers" in said


def test_one_broken_checkpoint_of_a_list_is_named_and_the_others_are_scored(world: World) -> None:
    weight = world.weight("stage1/10", "o_proj")
    whole = weight.read_bytes()
    weight.write_bytes(whole[:-50])
    said = refused(world.snakemake("stage1"))
    assert re.search("What failed:\n  stage1 step 10: .*ends early", said)
    assert world.results("stage1/by_checkpoint/step_20/tier3_cf.json").is_file()
    assert not world.results("stage1/by_checkpoint/step_10/tier3_cf.json").exists()
    assert planned(world, "stage1") == {"report_of_stage": 1, "stage1": 1}
    assert planned(world, "stage1", "--forcerun", "score")["score"] == 1
    weight.write_bytes(whole)
    again = planned(world, "stage1")
    assert (again["check"], again["score"], again["collect"]) == (1, 1, 1)
    well(world.snakemake("stage1"))
    assert planned(world, "stage1") == {"report_of_stage": 1, "stage1": 1}
    assert len([*world.results("stage1/eval_logs/score").glob("10-*.log")]) == 1


def test_one_of_all_is_left_out_until_it_is_complete(world: World) -> None:
    with world.restored():
        world.change_stage("stage1", steps="all")
        world.weight("stage1/10", "o_proj").touch()
        weight = world.weight("stage1/20", "o_proj")
        whole = weight.read_bytes()
        weight.write_bytes(whole[:-50])
        done = world.snakemake("stage1", "-n")
        weight.write_bytes(whole)
    assert "stages.stage1: left out until it is complete: " in done.stderr
    assert "scored/10-" in done.stdout
    assert "scored/20-" not in done.stdout


def test_a_checkpoint_that_is_not_there_is_one_sentence(world: World) -> None:
    with world.restored():
        world.change_stage("stage1", steps=[10, 20, 200])
        said = refused(world.snakemake("-n", "stage1"))
    assert f"stages.stage1.steps: {world.folder}/ckpts/stage1/200: no checkpoint there" in said
