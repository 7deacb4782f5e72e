"""Several checkpoints in one job: the same results, and what failed is named."""

import json
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

from tests.histories.oracle import differences_of
from tests.histories.warm import well
from tests.workflow.test_verified_answers import SAMPLED
from tests.workflow.world import World, want_answers


@pytest.fixture
def world(prefilled_world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """The same with results of its own, on one thread."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    return prefilled_world.with_results(tmp_path, scoring={"checkpoints_per_job": 2})


def of_step(world: World, step: int) -> Path:
    return world.results("stage1", "by_checkpoint", f"step_{step}")


def batches(world: World, *targets: str) -> set[str]:
    """The batches that a dry run would score."""
    said = well(world.snakemake(*targets, "-n")).stdout
    return set(re.findall(r"made/scored/(\w+)-\w+$", said, re.M))


def test_the_same_results_as_one_job_each(world: World, tmp_path: Path) -> None:
    """One process scores both, and each has a record and a log of its own."""
    single = world.with_results(tmp_path / "single")
    for step in ("10", "20"):
        well(single.evaluation("score", "--stage", "stage1", "--step", step))
    assert batches(world, "stage1") == {"10_20"}
    targets = [str(of_step(world, step) / "tier2_ppl.json") for step in (10, 20)]
    well(world.snakemake("prefill"))
    well(world.snakemake(*targets))
    for step in (10, 20):
        assert len([*of_step(world, step).glob("tier*")]) == 2 + 3
        assert list(differences_of(of_step(world, step), of_step(single, step))) == []
        assert len([*of_step(world, step).glob(".made/score-*.json")]) == 1
        log = world.results("stage1", "eval_logs", "score", f"step_{step}.log").read_text()
        assert "loaded" in log
    assert batches(world, *targets) == set()


def test_parts_of_a_checkpoint_meet_in_the_store(world: World, tmp_path: Path) -> None:
    """Three jobs score its rows, one finds nothing left to score, and one collects the same results."""
    single, found = world.with_results(tmp_path / "single"), []
    cache = str(world.folder / "cache")
    for one, settings in ((world, {"parts": 3}), (single, {"parts": 1})):
        suites = shutil.copytree(one.plans["stage1"].config.suites, one.folder / "suites")
        one.change(suites=str(suites), cache=cache)
        want_answers(one, {"sampled": SAMPLED}, generation=settings)
        well(one.snakemake("prefill"))
        folder = one.results("stage2", "by_checkpoint", "step_5")
        said = well(one.snakemake(str(folder / "tier5_verified.json")))
        found.append((folder, Counter(re.findall(r"(?m)^(?:local)?rule (\w+):$", said.stderr))))
    (shared, rules), (alone, of_one) = found
    assert rules == {**of_one, "score": 3 + 1}
    differing = {found.split(":")[1].strip() for found in differences_of(shared, alone)}
    assert all(name.startswith("tier3_cf") for name in differing)  # sums of other batches
    ours, theirs = (json.loads((one / "tier3_cf.json").read_text()) for one in (shared, alone))
    assert ours["overall"] == pytest.approx(theirs["overall"], rel=1e-6)
    logs = [
        log.read_text() for log in world.results("stage2", "eval_logs", "score").glob("5-*.log")
    ]
    lacked = sorted(int(n) for log in logs for n in re.findall(r"(\d+) of \d+ rows are not", log))
    assert lacked[0] == 0 < lacked[1]


def test_a_new_step_renames_nothing(world: World) -> None:
    folder = world.folder / "ckpts"
    shutil.copytree(world.stages["stage1"]["checkpoints"], folder)
    shutil.copytree(folder / "10", folder / "30")
    world.change_stage("stage1", checkpoints=str(folder), steps="all")
    assert batches(world, "stage1") == {"10_20", "30"}
    well(world.evaluation("score", "--stage", "stage1", "--step", "20"))
    assert batches(world, "stage1") == {"10_30"}
