"""The whole workflow on a tiny ladder: everything made once, and nothing twice."""

import json
import os
import shutil
from pathlib import Path

import pyarrow.csv
import pytest
import yaml

from tests.histories.warm import ROOT, run_python, well
from tests.results.page import undescribed
from tests.workflow.world import World, build_world, jobs, stored_scores


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """The tiny world, whose stage 2 has longer sequences, after `snakemake prefill` and `snakemake`."""
    world = build_world(tmp_path_factory.mktemp("world"))
    for step in (5, 15):
        _lengthen(world.folder / "ckpts/stage2" / str(step))
    world.change_stage("stage2", sequence_length=128)
    (world.folder / "said.txt").write_text(world.make().stderr)
    return world


def _lengthen(folder: Path) -> None:
    model = json.loads((folder / "model_config.json").read_text())
    (folder / "model_config.json").write_text(json.dumps(model | {"rope_theta": 500000.0}))
    training = yaml.safe_load((folder / "config.yaml").read_text())
    training["model"]["model_config"]["rope_theta"] = 500000.0
    training["tokens"]["sequence_length"] = 128
    (folder / "config.yaml").write_text(yaml.safe_dump(training))


def test_every_step_has_its_tiers_and_deltas(world: World) -> None:
    for step in (5, 15):
        folder = ("stage2", "by_checkpoint", f"step_{step}")
        ppl = world.read(*folder, "tier2_ppl.json")
        assert (ppl["stage"], ppl["step"], ppl["role"]) == ("stage2", step, "step")
        assert ppl["slices"]["text"]["blocks"] == 10
        assert ppl["items"]["asked"] == ppl["items"]["used"]
        choices = world.read(*folder, "tier3_cf.json")
        assert choices["items"] == {"asked": 24, "used": 24, "left_out": {}}
        probes = world.read(*folder, "tier4_sft_native.json")
        assert len(probes["prompts"]) == 1
        assert world.results(*folder, "bridge_deltas.json").is_file()
    assert world.results("stage2", "summary.csv").is_file()
    assert world.results("stage2", "report.html").is_file()
    assert not world.results("stage1", "by_checkpoint", "step_10", "tier4_sft_native.json").exists()


def test_a_run_ends_with_the_recommendation_and_a_dry_run_does_not(world: World) -> None:
    said = (world.folder / "said.txt").read_text()
    advice = world.read("stage2", "recommendation.json")
    assert f"stage2: Take {advice['step']} (" in said
    assert said.count("stage1: no bridge, so no recommendation") == 1  # jobs do not say it too
    done = well(world.snakemake("-n", "--forceall"))
    assert "no recommendation" not in done.stdout + done.stderr


def test_every_file_and_its_keys_are_in_the_documentation(world: World) -> None:
    assert [*undescribed(world.results())] == []


@pytest.mark.parametrize("snakefile", ["workflow/Snakefile", "Snakefile"])
def test_the_report_holds_pages_and_figures(world: World, snakefile: str) -> None:
    page = world.folder / "report.html"
    well(world.snakemake("--report", str(page), snakefile=snakefile))
    text = page.read_text()
    for name in ("stage2/report.html", "summary.csv", "all stages"):
        assert name in text
    assert world.results("stage2", "figures", "tier3_forest.svg").is_file()
    assert not world.results("stage1", "figures", "tier3_forest.svg").exists()


def test_status_tells_what_an_edit_made_outdated(world: World) -> None:
    assert world.evaluation("status").returncode == 0
    with world.restored():
        world.change(scoring={"dtype": "bfloat16"})
        done = world.evaluation("status", "--json")
    assert done.returncode == 1
    for entry in json.loads(done.stdout)["stages"].values():
        states = {one[step] for one in entry["subjects"].values() for step in ("score", "collect")}
        assert states == {"outdated"}
        assert not entry["complete"]


def test_a_second_call_makes_the_report_alone_and_changes_nothing(world: World) -> None:
    before = {path: path.read_bytes() for path in world.results().rglob("*.*") if path.is_file()}
    done = well(world.snakemake())
    assert jobs(done) == {"report", "all"}
    changed = {path.name for path, content in before.items() if content != path.read_bytes()}
    assert changed <= {"report.log"}
    assert not world.results(".made", "lock.json").exists()


PAGES = """
import sys, yaml
from pathlib import Path
from evaluation.flow import hooks
from evaluation.flow.run import PlannedRun
hooks.report_despite_failures(PlannedRun(yaml.safe_load(Path(sys.argv[1]).read_text()), [sys.argv[1]]))
"""


def test_a_page_of_outdated_results_says_so_where_a_job_failed(world: World) -> None:
    page, before = (
        world.results("stage2/report.html"),
        world.results("stage2/report.html").read_text(),
    )
    with world.restored():
        world.change(scoring={"dtype": "bfloat16"})
        well(run_python(["-c", PAGES, str(world.config)], world.folder))
        text = page.read_text()
    assert "made from other settings" in text
    assert "made from other settings" not in before
    well(world.snakemake(str(page)))
    assert page.read_text() == before


def test_one_file_is_a_target(world: World) -> None:
    """Also one that is there, and was made from other settings."""
    target = world.results("stage2", "by_checkpoint", "step_5", "tier3_cf.json")
    before = target.read_bytes()
    with world.restored():
        world.change(scoring={"dtype": "bfloat16"})
        well(world.snakemake(str(target)))
        assert target.read_bytes() != before
    target.unlink()
    well(world.snakemake(str(target)))
    assert target.read_bytes() == before


GOOD = "your workflow is in a good condition"
LIGHT = {
    "snakemake -n": "rule report:",
    "snakemake --lint": GOOD,
    "evaluation --help": "usage: python -m evaluation",
    "evaluation score --help": "usage: python -m evaluation",
    "evaluation collect --stage stage2 --step 5": "step_5",
    "evaluation report --stage stage2": "stage2",
    "evaluation status": "stage2",
    "evaluation.scoring.job": "was imported",
}


@pytest.mark.parametrize("command", LIGHT)
def test_what_needs_no_model_imports_no_torch(world: World, tmp_path: Path, command: str) -> None:
    """It takes seconds, for each of many short jobs; the last command shows that the guard works."""
    for name in ("torch", "transformers", "datasets"):
        (tmp_path / f"{name}.py").write_text(f"raise RuntimeError('{name} was imported')\n")
    words = ["-m", *command.split()]
    if words[1] == "snakemake":
        words += ["-s", str(ROOT / "workflow/Snakefile"), "--configfile", str(world.config)]
    variables = {"PYTHONPATH": f"{tmp_path}:{ROOT}", "EVALUATION_CONFIG": str(world.config)}
    done = run_python(words, world.folder, cold=True, **variables)
    assert LIGHT[command] in done.stdout + done.stderr
    assert bool(done.returncode) == (LIGHT[command] == "was imported")


def test_the_bridge_is_scored_at_the_stage_s_length_and_the_difference_is_stated(
    world: World,
) -> None:
    told = ("sequence_length", "trained_sequence_length", "rotary_embedding")
    for name, values in (
        ("by_checkpoint/step_15", [128, 128, "rope_theta 500,000"]),
        ("bridge", [128, 64, "rope_theta 10,000"]),
    ):
        found = world.read("stage2", *name.split("/"), "tier2_ppl.json")
        assert [found[key] for key in told] == values
    notes = world.read("stage2", "by_checkpoint", "step_15", "bridge_deltas.json")["notes"]
    assert notes == [
        "trained on sequences of 128 tokens, the bridge on 64",
        "positions by rope_theta 500,000, those of the bridge by rope_theta 10,000",
    ]
    (log,) = world.results("stage2", "eval_logs", "score").glob("bridge-*.log")
    assert "as stage2's bridge it is scored on 128" in log.read_text()


def test_other_runs_are_compared_and_one_that_cannot_be_stops_no_other(world: World) -> None:
    scores = stored_scores(world.results())
    other = shutil.copytree(world.results(), world.folder / "other")
    bad = str(world.folder / "nowhere")
    configs = [*world.results(".config").glob("*/*.yaml")]
    for config in configs:
        os.utime(config, (0, 0))
    with world.restored():
        world.change(runs={"good": {"path": str(other)}, "bad": {"path": bad}})
        done = well(world.snakemake())
        assert not any(config.exists() for config in configs)  # of runs of long ago
        assert jobs(done) == {"report", "all"}
        assert stored_scores(world.results()) == scores
        rows = pyarrow.csv.read_csv(world.results("comparison.csv")).to_pylist()
        assert len({row["against"] for row in rows}) == 4
        sentence = f"runs.bad: {bad}: no such file or folder"
        assert sentence in world.results("report.html").read_text()
        shutil.copytree(other, bad)
        well(world.snakemake())  # it is tried again by every run
    assert sentence not in world.results("report.html").read_text()
