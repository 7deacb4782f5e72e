"""`runs:` in the configuration: laid over this run by the workflow, without a score made anew."""

import json
import shutil
from pathlib import Path

import pyarrow.csv

from evaluation.checkpoints.training import METADATA
from tests.histories.warm import well
from tests.workflow.world import build_world, jobs, stored_scores


def test_other_runs_are_compared_and_one_that_cannot_be_stops_no_other(tmp_path: Path) -> None:
    """The other run is the same with two steps swapped, which say how many tokens they had seen."""
    world = build_world(tmp_path)
    for step in (5, 15):
        path = world.folder / f"ckpts/stage2/{step}" / METADATA
        content = json.loads(path.read_text())
        content["metas"]["consumed_tokens_total"] = step * 640
        path.write_text(json.dumps(content))
    world.make()
    scores = stored_scores(world.results())
    other = Path(shutil.copytree(world.results(), world.folder / "other"))
    steps = other / "stage2/by_checkpoint"
    for old, new in (("step_5", "aside"), ("step_15", "step_5"), ("aside", "step_15")):
        (steps / old).rename(steps / new)
    bad = str(world.folder / "nowhere")
    world.change(runs={"good": {"path": str(other), "by": "tokens"}, "bad": {"path": bad}})
    done = well(world.snakemake())
    assert jobs(done) == {"report", "all"}
    assert stored_scores(world.results()) == scores
    rows = pyarrow.csv.read_csv(world.results("comparison.csv")).to_pylist()
    matched = {(row["step"], row["against"]) for row in rows}  # of stage 1 no tokens are known
    assert matched == {(5, "good/stage2/15"), (15, "good/stage2/5")}
    page = world.results("report.html").read_text()
    assert "This run (A) and good (B), stage2: " in page
    assert (sentence := f"runs.bad: {bad}: no such file or folder") in page
    shutil.copytree(other, bad)
    well(world.snakemake())  # it is tried again by every run
    assert sentence not in world.results("report.html").read_text()
