"""The time that missing scores take, from the files of those that are there."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from evaluation.reporting.status import stage_status, status_table
from evaluation.reporting.time_left import ScoredTiers, time_left
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS
from tests.bridge.folders import edit_json
from tests.reporting.pages import STEPS


def scored(root: Path, name: str, source: Path, **seconds: float | None) -> ScoredTiers:
    """A checkpoint whose tiers took so many seconds; None for one that is missing."""
    states = {}
    for tier, took in seconds.items():
        states[tier] = "missing" if took is None else "done"
        if took is not None:
            described = TIERS[tier]
            content = json.loads((source / described.summary_file).read_text())
            (root / name).mkdir(exist_ok=True)
            summary = root / name / described.summary_file
            summary.write_text(json.dumps({**content, "seconds": took}))
            for file in (described.items_file, described.units_file):
                shutil.copy(source / file, root / name)
    return ScoredTiers(folder=root / name, states=states)  # type: ignore[arg-type]


CASES: list[tuple[list[dict[str, Any]], tuple[float, int, int, tuple[str, ...]] | None]] = [
    ([{"tier2": 10, "tier3": 100}], None),
    ([{"tier2": None, "tier3": None}], (0, 1, 0, ("tier2", "tier3"))),
    ([{"tier2": 10, "tier3": 100}, {"tier2": None, "tier3": None}], (110, 1, 1, ())),
    ([{"tier2": 10, "tier3": 100}, {"tier2": 30, "tier3": None}], (100, 1, 2, ())),
    ([{"tier2": 10, "tier3": None}, {"tier2": 30, "tier3": None}], (0, 2, 2, ("tier3",))),
    ([{"tier2": 10, "tier3": 90}, *3 * [{"tier2": None, "tier3": None}]], (300, 3, 1, ())),
]


@pytest.mark.parametrize(("checkpoints", "expected"), CASES)
def test_what_is_missing_takes_the_mean_of_what_is_done(
    reported: dict[str, StagePlan], tmp_path: Path, checkpoints: Any, expected: Any
) -> None:
    source = reported["second"].step_folder(20)
    found = [scored(tmp_path, str(i), source, **one) for i, one in enumerate(checkpoints)]
    left = time_left(found)
    if expected is None:
        assert left is None
    else:
        assert left is not None
        assert (left.seconds, left.checkpoints, left.scored, left.unknown) == expected


def test_status_says_it(plans: dict[str, StagePlan]) -> None:
    plan = plans["second"]
    assert stage_status(plan, STEPS)["left"] is None
    edit_json(plan.step_folder(10) / "tier3_cf.json", seconds=600.0)
    edit_json(plan.step_folder(20) / "tier3_cf.json", seconds=1800.0)
    edit_json(plan.bridge_folder / "tier3_cf.json", seconds=1200.0)
    (plan.step_folder(30) / "tier3_cf.json").unlink()
    table = status_table({"second": stage_status(plan, STEPS)})
    assert "scoring left: about 20 min for 1 checkpoint, one after another" in table
