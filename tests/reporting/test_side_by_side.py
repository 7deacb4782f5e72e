"""Checkpoints side by side, and the outputs that a stage and a run declare."""

import csv
import io
import json
import re
from pathlib import Path

import pytest

from evaluation.__main__ import main
from evaluation.reporting.tables.side_by_side import as_csv, as_text, side_by_side
from evaluation.results.stage_files import OVERVIEW, PAGE
from evaluation.settings.names import SHARED_FILES
from evaluation.settings.plan import StagePlan
from tests.bridge.folders import edit_json


def test_no_stage_may_be_called_like_a_file_of_the_front_page() -> None:
    assert {PAGE, OVERVIEW} <= set(SHARED_FILES)


@pytest.fixture
def folders(plans: dict[str, StagePlan]) -> dict[str, Path]:
    plan = plans["second"]
    return {
        "before SFT": plan.bridge_folder,
        "SFT_1": plan.step_folder(10),
        "RL": plan.step_folder(30),
    }


def test_every_headline_is_there_with_its_interval(folders: dict[str, Path]) -> None:
    found, notes = side_by_side(folders)
    lines = csv.DictReader(io.StringIO(as_csv(found)))
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
    rows, _ = side_by_side(folders)
    turned, _ = side_by_side(dict(reversed(folders.items())))
    for shown, labels, arrows in ((rows, [*folders], "▲▲"), (turned, [*folders][::-1], "▼▼")):
        lines = as_text(shown, labels).splitlines()
        line = next(one for one in lines if one.startswith("Ranked") and "overall" in one)
        assert re.sub("[^▲▼]", "", line) == arrows
    text = as_text(rows, [*folders], latex=True)
    lines = text.splitlines()
    assert (lines[0], lines[-1]) == (r"\begin{tabular}{lllll}", r"\end{tabular}")
    assert r"SFT\_1" in text
    assert "▲" not in text
    assert r"$^{\blacktriangle}$" in text
    assert {line.count(" & ") for line in lines if line.endswith(r"\\")} == {4}


def test_a_column_that_cannot_be_paired_is_told(folders: dict[str, Path]) -> None:
    edit_json(folders["RL"] / "tier3_cf.json", protocol="tier3-0")
    rows, (note,) = side_by_side(folders)
    assert note.startswith("RL is not tested against SFT_1: ")
    assert as_text(rows, [*folders]).splitlines()[0].split()[-1] == "RL"


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
