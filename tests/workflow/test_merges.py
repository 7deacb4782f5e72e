"""A tiny world with a merge: evaluated like a step, made again only for what it depends on."""

import csv
import hashlib
import json
import re
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from evaluation.results.stage_files import Recommendation
from tests.histories.warm import well
from tests.workflow.paper import refused
from tests.workflow.world import World, build_world, stored_scores

SOUP = {"weights": {5: 0.25, "stage1/20": 0.75}}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """The tiny world with two merges, after `snakemake prefill` and `snakemake`."""
    world = build_world(tmp_path_factory.mktemp("merges"))
    world.change_stage("stage2", merges={"both": {"mean": [5, 15]}, "soup": SOUP})
    world.make()
    return world


def _digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*.parquet"))
    }


def test_a_merge_stands_beside_the_steps_under_its_name(world: World) -> None:
    found = world.read("stage2", "by_checkpoint", "merge_soup", "tier2_ppl.json")
    assert (found["role"], found["step"], found["merge"]) == ("merge", None, "soup")
    assert "0.25 × " in found["checkpoint"]
    deltas = world.read("stage2", "bridge_deltas.json")
    assert [(one["step"], one["merge"]) for one in deltas["verdicts"]] == [
        (5, None), (15, None), (None, "both"), (None, "soup")
    ]  # fmt: skip
    rows = pq.read_table(world.results("stage2", "summary.parquet")).to_pylist()
    assert {row["merge"] for row in rows if row["role"] == "merge"} == {"both", "soup"}
    assert {type(row["step"]) for row in rows if row["role"] != "bridge"} == {int, type(None)}
    assert "| merge both | merge soup |" in world.results("stage2", "summary.md").read_text()
    with open(world.results("stage2", "score_matrix.csv")) as file:
        assert {"merge both value", "merge soup delta"} <= set(next(csv.reader(file)))
    assert ">soup<" in world.results("stage2", "figures", "tier2_curves.svg").read_text()


def test_it_is_corrected_for_and_recommended_with_the_steps(world: World) -> None:
    """All four candidates are corrected together, and the best one is named, be it a merge."""
    advice = Recommendation.read(world.results("stage2", "recommendation.json"))
    assert "The best of 4 checkpoints" in (advice.corrected_for or "")
    named = [advice.candidate, *(one.candidate for one in (*advice.similar, *advice.others))]
    assert sorted(map(str, named)) == ["15", "5", "both", "soup"]
    done = well(world.evaluation("bridge-table"))
    assert {"5", "15", "both", "soup"} <= {
        line.split()[0] for line in done.stdout.splitlines() if line
    }
    if advice.merge:
        assert f"merge {advice.merge} — " in done.stdout


def test_what_is_scored_is_what_merge_writes(world: World) -> None:
    """The written checkpoint, scored as a step, gets the scores of the merge to the bit."""
    target = world.folder / "ckpts" / "stage2" / "25"
    command = ("merge", "--stage", "stage2", "--name", "soup", "--output", str(target))
    well(world.evaluation(*command))
    again = world.evaluation(*command)
    assert "is there already" in again.stderr
    for part in ("score", "collect"):
        well(world.evaluation(part, "--stage", "stage2", "--step", "25"))
    shutil.rmtree(target)
    folders = [world.results("stage2", "by_checkpoint", name) for name in ("merge_soup", "step_25")]
    ours, theirs = (_digests(folder) for folder in folders)
    shutil.rmtree(folders[1])
    assert len(ours) >= 2
    assert ours == theirs
    assert json.loads((folders[0] / "tier2_ppl.json").read_text())["role"] == "merge"


def scored(world: World) -> list[str]:
    """The checkpoints that a dry run would score."""
    return re.findall(r"^score_\w+ (\S+): ", well(world.snakemake("-n")).stdout, re.MULTILINE)


def test_an_edited_weight_makes_that_merge_anew_and_nothing_else(world: World) -> None:
    before = stored_scores(world.results())
    results = world.results("stage2", "by_checkpoint")
    others = {name: _digests(results / name) for name in ("step_5", "step_15", "merge_both")}
    old = world.read("stage2", "by_checkpoint", "merge_soup", "tier2_ppl.json")
    soup = {"weights": {5: 0.5, "stage1/20": 0.5}}
    world.change_stage("stage2", merges={"both": {"mean": [5, 15]}, "soup": soup})
    assert scored(world) == ["merge_soup"]
    well(world.snakemake())
    new = world.read("stage2", "by_checkpoint", "merge_soup", "tier2_ppl.json")
    assert new["checkpoint_identity"] != old["checkpoint_identity"]
    assert new["slices"] != old["slices"]
    after = stored_scores(world.results())
    made = {name.split("/")[0] for name, _ in after.items() - before.items()}
    assert made == {new["checkpoint_identity"]}
    assert others == {name: _digests(results / name) for name in others}


def test_results_stay_when_a_member_is_deleted_and_a_new_merge_of_it_is_refused(
    world: World,
) -> None:
    member, aside = world.folder / "ckpts" / "stage1" / "20", world.folder / "aside"
    member.rename(aside)
    with world.restored():
        well(world.snakemake())
        assert world.results("stage2", "by_checkpoint", "merge_soup", "tier2_ppl.json").is_file()
        assert "merge soup" in world.results("stage2", "summary.md").read_text()
        status = json.loads(world.evaluation("status", "--json").stdout)
        assert status["stages"]["stage2"]["subjects"]["soup"]["deleted"]
        world.change_stage("stage2", merges={"late": {"mean": [5, "stage1/20"]}})
        said = refused(world.snakemake("-n"))
        assert f"stages.stage2.merges.late: {member}: no checkpoint there" in said
        new = world.folder / "new"
        command = ("merge", "--stage", "stage2", "--name", "late", "--output", str(new))
        assert f"{member}: no checkpoint there" in refused(world.evaluation(*command))
        assert not new.exists()
    aside.rename(member)


def test_a_rewritten_member_makes_the_merge_anew(world: World) -> None:
    path = world.weight("stage2/5", "down_proj")
    path.write_bytes(path.read_bytes())
    assert {*scored(world)} == {"step_5", "merge_soup", "merge_both"}
