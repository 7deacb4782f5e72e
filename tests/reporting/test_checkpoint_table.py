"""Checkpoints side by side: what the cells say, and what the arrows are worth."""

import csv
import io
import json
import re
from pathlib import Path

import pytest

from evaluation.__main__ import main
from evaluation.reporting.tables.score_matrix import checkpoint_columns, columns_in
from evaluation.settings.plan import StagePlan


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
    text = columns_in("csv", columns)
    rows = {(row["tier"], row["item"]): row for row in csv.DictReader(io.StringIO(text))}
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
    path = folders["RL"] / "tier3_cf.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "protocol": "tier3-0"}))
    columns, notes = checkpoint_columns(folders)
    text = columns_in("text", columns)
    assert len(notes) == 1
    assert notes[0].startswith("RL is not tested against SFT_1: ")
    assert text.splitlines()[0].split()[-1] == "RL"


def test_by_hand(
    folders: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = folders["before SFT"], folders["RL"]
    out = tmp_path / "table.tex"
    assert main(["table", f"a={one}", f"b={other}", "--format", "latex", "--output", str(out)]) == 0
    assert r"\toprule" in out.read_text()
    assert main(["table", f"a={one}", f"a={other}"]) == 1
    assert "two columns are called 'a'" in capsys.readouterr().err
    assert main(["table", "a="]) == 1
    assert "no folder after the label" in capsys.readouterr().err
    assert main(["table", f"a={tmp_path}"]) == 1
    assert "no tier files" in capsys.readouterr().err
