"""The code in docs/results_in_pandas.md, run on results; `evaluation.load` and what it refuses."""

import contextlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import evaluation
from evaluation.errors import ResultsError
from evaluation.results.table import TABLE_COLUMNS
from evaluation.settings.plan import StagePlan
from tests.conftest import ROOT
from tests.reporting.pages import STEPS

PAGE = ROOT / "docs" / "results_in_pandas.md"


@pytest.fixture(scope="module")
def names(reported: dict[str, StagePlan]) -> Iterator[dict[str, Any]]:
    """What the page's code leaves, run from the folder of results."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    found: dict[str, Any] = {}
    with contextlib.chdir(reported["first"].results.parent):
        exec("\n".join(blocks), found)
        yield found


def test_it_gives_what_it_says(names: dict[str, Any]) -> None:
    steps = names["steps"]
    assert list(names["table"].columns) == [*TABLE_COLUMNS]
    assert list(names["accuracy"].columns) == list(STEPS)
    assert set(names["accuracy"].index) == {"quiz", "exam", "overall"}
    assert set(names["every"]["stage"]) == {"first", "second"}
    assert set(names["kept"].columns) == {"first", "second"}
    assert "quiz" in names["latex"]
    own = steps[(steps["step"] == 30) & (steps["item"] == "quiz") & (steps["metric"] == "acc")]
    quiz = names["both"][names["both"]["item"] == "quiz"]
    lost = ((quiz["acc"] == 0) & (quiz["acc_bridge"] == 1)).sum()
    gained = (names["learned"]["item"] == "quiz").sum()
    assert (gained - lost) / len(quiz) == pytest.approx(own["delta"].iloc[0])
    drawn = Path("accuracy.svg").read_text()
    assert all(f">{item}<" in drawn for item in ("overall", "exam", "quiz"))


def test_what_is_not_there(reported: dict[str, StagePlan], tmp_path: Path) -> None:
    results = evaluation.load(reported["second"].results)
    assert list(results.folders) == ["second"]
    for call, given, said in (
        (results.units, ("second", 10, "tier9"), "no tier 'tier9'"),
        (results.units, ("second", 7, "tier2"), "no such file; the checkpoint"),
        (results.table, ("third",), "no stage 'third'"),
        (evaluation.load, (tmp_path,), "has no table of a stage"),
        (evaluation.load, (tmp_path / "none",), "no such folder"),
    ):
        with pytest.raises(ResultsError, match=said):
            call(*given)  # type: ignore[operator]


def test_importing_the_package_loads_nothing_else() -> None:
    code = "import evaluation, sys; print(sorted({'pandas', 'torch', 'pydantic'} & {*sys.modules}))"
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert ended.stdout.strip() == "[]"
