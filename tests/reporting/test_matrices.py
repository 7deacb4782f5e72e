"""Score matrices: of a stage, of checkpoints side by side, and of what later stages kept."""

import csv
import io
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from evaluation.__main__ import main
from evaluation.bridge.delta import Delta
from evaluation.bridge.deltas import compare
from evaluation.bridge.write import write_deltas
from evaluation.reporting.tables.retention import retention
from evaluation.reporting.tables.score_matrix import checkpoint_columns, columns_in
from evaluation.reporting.tables.stage_results import read_stage
from evaluation.results.deltas_file import StepDeltas
from evaluation.results.read import read_results
from evaluation.results.stage_files import FRONT_FILES, stage_outputs
from evaluation.settings.config import validate_config
from evaluation.settings.names import SHARED_FILES
from evaluation.settings.plan import StagePlan
from evaluation.settings.planning import plan_stages
from tests.bridge.folders import edit_json, edited, make_plans, write_side
from tests.reporting.pages import STEPS, page_data, rows_of


def test_the_score_matrix_holds_values_and_deltas(reported: dict[str, StagePlan]) -> None:
    plan = reported["second"]
    rows = {(row["tier"], row["item"]): row for row in rows_of(plan.results / "score_matrix.csv")}
    for step in STEPS:
        folder = plan.step_folder(step)
        stored = json.loads((folder / "bridge_deltas.json").read_text())["deltas"]
        shown = [d for d in stored if d["metric"] in ("delta_ppl", "delta_acc")]
        assert {("tier2", "web"), ("tier3", "overall")} <= {(d["tier"], d["item"]) for d in shown}
        for delta in shown:
            row = rows[delta["tier"], delta["item"]]
            assert float(row[f"step {step} value"]) == pytest.approx(delta["value"])
            assert float(row[f"step {step} delta"]) == pytest.approx(delta["delta"])
            assert row[f"step {step} flag"] == delta["flag"]
            assert float(row["bridge value"]) == pytest.approx(delta["bridge_value"])
    assert "step 30 delta" in rows["tier3", "quiz"]


def test_the_heat_map_is_blue_where_it_is_better(reported: dict[str, StagePlan]) -> None:
    lines = (reported["second"].results / "score_matrix.tex").read_text().splitlines()
    assert lines[0].startswith("% \\usepackage{booktabs")
    assert lines[2] == r"\begin{tabular}{lrrrr}"
    quiz = next(line for line in lines if line.startswith("quiz"))
    cells = quiz.removesuffix(r" \\").split(" & ")
    assert "cellcolor" not in cells[1]  # the bridge itself
    tints = [cell.split("{")[1].split("}")[0] for cell in cells[2:]]
    blue = [int(tint[4:], 16) - int(tint[:2], 16) for tint in tints]
    assert blue == sorted(blue)  # each step gains more
    assert blue[0] > 0
    assert r"$^{\blacktriangle}$" in cells[-1]


def test_retention_is_the_paired_delta(reported: dict[str, StagePlan]) -> None:
    """One checkpoint with two folders of results is one column; pairs agree with the bridge's."""
    page = reported["first"].results.parent / "report.html"
    rows = rows_of(page.with_name("retention.csv"))
    assert {(row["earlier"], row["later"]) for row in rows} == {("first/100", "second/30")}
    assert len(page_data(page)["retention"]) == len(rows)
    text = page.with_name("retention.tex").read_text()
    assert r"& first/100 & second/30 \\" in text
    assert r"\cellcolor" in text
    kept = {(row["tier"], row["item"], f"delta_{row['metric']}"): row for row in rows}
    stored = StepDeltas.read(reported["second"].step_folder(30) / "bridge_deltas.json").deltas
    assert {(d.tier, d.item, d.metric) for d in stored} == set(kept)
    for delta in stored:
        row = kept[delta.tier, delta.item, delta.metric]
        assert float(row["earlier_value"]) == delta.bridge_value
        for name in ("value", "delta", "low", "high", "p_holm", "flag"):
            known = getattr(delta, name)
            assert row[name] == ("" if known is None else str(known)), name


def test_items_of_other_data_are_not_compared(plans: dict[str, StagePlan]) -> None:
    for folder in (plans["second"].bridge_folder, plans["second"].step_folder(30)):
        with edited(folder / "tier3_cf.json") as content:
            del content["tasks"]["exam"]
    with edited(plans["first"].step_folder(100) / "tier3_cf.json") as content:
        content["tasks"]["quiz"]["data_checksum"] = {"examples.jsonl": "other"}
    shutil.rmtree(plans["second"].bridge_folder)  # it is known of whom from the other results
    found = [read_stage(plans["first"], (100,)), read_stage(plans["second"], STEPS)]
    assert {row.item for row in retention(found) if row.tier == "tier3"} == set()


def stages_of(root: Path, bridges: dict[str, str | None]) -> dict[str, StagePlan]:
    """Stages by name, each with the last checkpoint of another one as its bridge, or with none."""
    content = make_plans(root)["first"].config.model_dump(mode="json")
    first = content["stages"].pop("first")
    stages = {
        name: {
            **first,
            "checkpoints": str(root / name),
            "bridge": bridge and {"stage": bridge, "step": 100},
        }
        for name, bridge in bridges.items()
    }
    return plan_stages(validate_config({**content, "stages": stages}, "test"))


def test_a_pair_is_one_family_and_its_mean_is_over_what_all_have(tmp_path: Path) -> None:
    """Of a stage's own pair the family is the stage's; `web` was not scored on one of two tasks."""
    plans = stages_of(tmp_path, {"web": None, "mix": "web", "sft": "mix"})
    for seed, (name, plan) in enumerate(plans.items()):
        write_side(plan.step_folder(100), plan, step=100, checkpoint_identity=name, seed=seed)
    sft = plans["sft"]
    write_side(sft.bridge_folder, sft, step=100, checkpoint_identity="mix", seed=1)
    write_deltas(sft, 100)
    with edited(plans["web"].step_folder(100) / "tier3_cf.json") as content:
        del content["tasks"]["exam"]
    found = [read_stage(plan, (100,)) for plan in plans.values()]
    rows = list(retention(found))
    stored = {(d.tier, d.item, d.metric): d for d in found[2].deltas[100].deltas}
    for pair, (earlier, later) in {
        "web to sft": ("web/100", "sft/100"),
        "mix to sft": ("mix/100", "sft/100"),
    }.items():
        own = [row for row in rows if (row.earlier, row.later) == (earlier, later)]
        means = [row for row in own if (row.tier, row.metric) == ("tier3", "acc")]
        assert "overall of 1 shared item" in {row.item for row in means}, pair
        assert "overall" not in {row.item for row in means}, pair
        quiz, mean = (row for row in means if row.item.endswith(("quiz", "item")))
        assert (mean.value, mean.delta, mean.low) == (quiz.value, quiz.delta, quiz.low), pair
        known = stored if pair == "mix to sft" else without_exam(plans["sft"], plans["web"])
        tested = [row for row in own if row.p_holm is not None]
        assert len({row.tier for row in tested}) == 3
        for row in tested:
            delta = known[row.tier, row.item, f"delta_{row.metric}"]
            assert (row.p_holm, row.flag) == (delta.p_holm, delta.flag), row.item


def without_exam(ours: StagePlan, theirs: StagePlan) -> dict[tuple[str, str, str], Delta]:
    """Deltas of all that the two share, as a bridge of the one to the other would have them."""
    sides = [read_results(plan.step_folder(100), plan.tiers) for plan in (ours, theirs)]
    tier3 = sides[0].tiers["tier3"]
    quiz = replace(tier3, items={"quiz": tier3.items["quiz"]})
    mine = replace(sides[0], tiers={**sides[0].tiers, "tier3": quiz})
    return {(d.tier, d.item, d.metric): d for d in compare(mine, sides[1])}


LATER = {"web": None, "mix": "web", "other_mix": "web", "sft": "mix", "alone": None}


def test_only_what_a_checkpoint_was_trained_from_is_earlier(tmp_path: Path) -> None:
    """Two ablations of one stage are not, nor a stage without a bridge; a bridge's bridge is."""
    plans = stages_of(tmp_path, LATER)
    for name, plan in plans.items():
        write_side(plan.step_folder(100), plan, step=100, checkpoint_identity=name)
        if (bridge := LATER.get(name)) is not None and name != "sft":  # its bridge is to come
            write_side(plan.bridge_folder, plan, step=100, checkpoint_identity=bridge)
    found = [read_stage(plan, (100,)) for plan in plans.values()]
    pairs = {(row.earlier, row.later) for row in retention(found)}
    expected = [("web", "mix"), ("web", "other_mix"), ("web", "sft"), ("mix", "sft")]
    assert pairs == {(f"{earlier}/100", f"{later}/100") for earlier, later in expected}


def test_every_output_is_declared(reported: dict[str, StagePlan]) -> None:
    """What `tables` writes is what Snakemake and status ask for; no stage may be called like one."""
    plan = reported["second"]
    written = {path.name for path in plan.results.iterdir() if path.is_file()}
    assert written == set(stage_outputs(plan))
    assert set(FRONT_FILES) <= set(SHARED_FILES)


@pytest.fixture
def folders(plans: dict[str, StagePlan]) -> dict[str, Path]:
    plan = plans["second"]
    return {
        "before SFT": plan.bridge_folder,
        "SFT_1": plan.step_folder(10),
        "RL": plan.step_folder(30),
    }


def test_every_headline_is_there_with_its_interval(folders: dict[str, Path]) -> None:
    columns, notes = checkpoint_columns(folders)
    lines = csv.DictReader(io.StringIO(columns_in("csv", columns)))
    rows = {(row["tier"], row["item"]): row for row in lines}
    assert notes == []
    for label, folder in folders.items():
        file = json.loads((folder / "tier3_cf.json").read_text())
        for name, task in file["tasks"].items():
            row = rows["tier3", name]
            value, low, high = (float(row[f"{label} {what}"]) for what in ("value", "low", "high"))
            assert value == task["accuracy"]
            assert low <= value <= high
    assert rows["tier3", "overall"]["before SFT flag"] == ""


def test_an_arrow_is_the_paired_verdict(folders: dict[str, Path]) -> None:
    """Against the column before; the other way round it turns. LaTeX has it, and escapes the rest."""
    columns, _ = checkpoint_columns(folders)
    turned, _ = checkpoint_columns(dict(reversed(folders.items())))
    for shown, arrows in ((columns, "▲▲"), (turned, "▼▼")):
        lines = columns_in("text", shown).splitlines()
        line = next(one for one in lines if one.startswith("Ranked") and "overall" in one)
        assert re.sub("[^▲▼]", "", line) == arrows
    text = columns_in("latex", columns)
    lines = text.splitlines()
    assert (lines[0], lines[-1]) == (r"\begin{tabular}{lrrr}", r"\end{tabular}")
    assert r"SFT\_1" in text
    assert "▲" not in text
    assert r"$^{\blacktriangle}$" in text
    bodies = [line for line in lines if line.endswith(r"\\") and "multicolumn" not in line]
    assert {line.count(" & ") for line in bodies} == {3}


def test_a_column_that_cannot_be_paired_is_told(folders: dict[str, Path]) -> None:
    edit_json(folders["RL"] / "tier3_cf.json", protocol="tier3-0")
    columns, (note,) = checkpoint_columns(folders)
    assert note.startswith("RL is not tested against SFT_1: ")
    assert columns_in("text", columns).splitlines()[0].split()[-1] == "RL"


def test_by_hand(
    folders: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = folders["before SFT"], folders["RL"]
    out = tmp_path / "table.tex"
    assert main(["table", f"a={one}", f"b={other}", "--format", "latex", "--output", str(out)]) == 0
    assert r"\toprule" in out.read_text()
    for columns, words in (
        ([f"a={one}", f"a={other}"], "two columns are called 'a'"),
        (["a="], "no folder after the label"),
        ([f"a={tmp_path}"], "no tier files"),
    ):
        assert main(["table", *columns]) == 1
        assert words in capsys.readouterr().err
