"""`runs:` in the configuration: laid over this run by the workflow, without a score made anew."""

import json
import shutil
from pathlib import Path

import pytest

from evaluation.checkpoints.training import METADATA
from evaluation.results.comparison_file import COMPARISON_FILES
from tests.histories.warm import well
from tests.workflow.world import World, build_world, jobs, stored_scores


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """The tiny world after all stages are made, and another run: the same with two steps swapped.

    Checkpoints of stage 2 say how many tokens they had seen.
    """
    world = build_world(tmp_path_factory.mktemp("other_runs"))
    world.change(runs={})  # pages tell a fingerprint of the file, which the end is to have, too
    for step in (5, 15):
        path = world.folder / "ckpts/stage2" / str(step) / METADATA
        content = json.loads(path.read_text())
        content["metas"]["consumed_tokens_total"] = step * 640
        path.write_text(json.dumps(content))
    world.make()
    other = Path(shutil.copytree(world.results(), world.folder / "other"))
    swapped = other / "stage2/by_checkpoint"
    (swapped / "step_5").rename(swapped / "aside")
    (swapped / "step_15").rename(swapped / "step_5")
    (swapped / "aside").rename(swapped / "step_15")
    return world


def root_files(world: World) -> dict[str, bytes]:
    found = [path for path in world.results().iterdir() if path.is_file() and path.suffix != ".log"]
    return {path.name: path.read_bytes() for path in found}


def test_an_edit_of_runs_makes_their_pages_and_no_score(world: World) -> None:
    before, without = stored_scores(world.results()), root_files(world)
    assert not any(name in without for name in COMPARISON_FILES)

    world.change(runs={"swapped": {"path": str(world.folder / "other"), "by": "tokens"}})
    done = well(world.snakemake())
    assert jobs(done) == {"report", "all"}
    assert stored_scores(world.results()) == before
    made = root_files(world)
    assert set(COMPARISON_FILES) < set(made)
    stages = json.loads(made["comparison.json"])["comparisons"][0]["stages"]
    assert [one["stage_a"] for one in stages] == ["stage2"]  # of stage 1 no tokens are known
    assert (stages[0]["by"], stages[0]["checkpoints"]) == ("tokens", 2)

    world.change(runs={})
    done = well(world.snakemake())
    assert jobs(done) == {"report", "all"}
    assert root_files(world) == without


def test_a_run_that_cannot_be_compared_is_named_and_stops_no_other(world: World) -> None:
    good, bad = str(world.folder / "other"), str(world.folder / "nowhere")
    world.change(runs={"good": {"path": good}, "bad": {"path": bad}})
    sentence = f"{bad}: no such file or folder"
    well(world.snakemake())
    assert sentence in world.results("report.log").read_text()
    found = {one["run_b"]: one for one in world.read("comparison.json")["comparisons"]}
    assert found["good"]["error"] is None
    assert found["good"]["stages"]
    assert found["bad"]["error"].startswith(sentence)
    assert sentence in world.results("report.html").read_text()
    shutil.copytree(good, bad)
    well(world.snakemake())  # it is tried again by every run
    assert sentence not in world.results("report.html").read_text()
    shutil.rmtree(bad)
