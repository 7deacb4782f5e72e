"""The code in docs/results_in_pandas.md, run on results."""

import contextlib
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from evaluation.results.table import TABLE_COLUMNS
from evaluation.settings.plan import StagePlan
from tests.conftest import ROOT
from tests.metrics.summaries import summarize_choices
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
    table, steps = names["table"], names["steps"]
    assert list(names["summary"].columns) == [column.name for column in TABLE_COLUMNS]
    assert names["stage"].name == "second"
    assert list(table.columns) == list(STEPS)
    assert set(table.index) == {"quiz", "exam", "overall"}
    assert set(names["every"]["stage"]) == {"first", "second"}
    assert names["pass_rates"].mean().between(0, 1).all()
    own = steps[(steps["step"] == 30) & (steps["item"] == "quiz") & (steps["metric"] == "acc")]
    quiz = names["learned"].get_level_values("task") == "quiz"
    lost = (~names["now"] & names["then"])["quiz"].sum()
    assert (quiz.sum() - lost) / 400 == pytest.approx(own["delta"].iloc[0])


@pytest.mark.parametrize("primary", ["raw", "per_char", "per_byte", "per_token", "pmi"])
def test_questions_are_ranked_as_their_task_ranks_them(
    names: dict[str, Any], reported: dict[str, StagePlan], tmp_path: Path, primary: str
) -> None:
    folder = shutil.copytree(reported["second"].step_folder(30), tmp_path / "step")
    table = with_ties_apart(pq.read_table(folder / "tier3_cf_candidates.parquet"))
    pq.write_table(table, folder / "tier3_cf_candidates.parquet")
    content = json.loads((folder / "tier3_cf.json").read_text())
    own = table.filter(pc.equal(table["task"], "quiz"))
    content["tasks"]["quiz"] = summarize_choices(own, primary)
    (folder / "tier3_cf.json").write_text(json.dumps(content))
    shown = names["right"](folder)["quiz"].mean()
    assert content["tasks"]["quiz"]["ties"] == 0
    assert shown == pytest.approx(content["tasks"]["quiz"]["accuracy"])
    accuracies = content["tasks"]["quiz"]["metrics"]
    assert len({round(value, 6) for value in accuracies.values()}) > 2  # they can be told apart


def with_ties_apart(table: pa.Table) -> pa.Table:
    """Candidates of many lengths, with log-probabilities that differ by every measure."""
    dice, frame = np.random.default_rng(0), table.to_pandas()
    for name in ("tokens", "chars", "bytes"):
        frame[name] = dice.integers(1, 90, len(frame))
    for name, low in (("logprob", -60.0), ("unconditional", -40.0)):
        frame[name] = dice.uniform(low, 0, len(frame))
    return pa.Table.from_pandas(frame, schema=table.schema, preserve_index=False)


def test_it_draws_a_plot(names: dict[str, Any]) -> None:
    drawn = Path("accuracy.svg").read_text()
    assert all(f">{item}<" in drawn for item in ("overall", "exam", "quiz"))
