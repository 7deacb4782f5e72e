"""Secondary metrics of accuracy: beside it in every file, in no family of tests, and heard where it is undecided."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from evaluation.bridge.write import write_deltas
from evaluation.errors import BridgeError, ConfigError
from evaluation.metrics.measures import choice_measures
from evaluation.reporting.terminal import bridge_table
from evaluation.results.read import read_results
from evaluation.settings.plan import StagePlan
from tests.bridge.folders import make_plans, read, write_side, write_stage_of

SMALL = 0.05
"""A skill that few questions show and every log-probability does."""

BITS = "delta_gold_bits_per_byte"


def improve(**keys: Any) -> list[dict[str, Any]]:
    return [{"tier": "tier3", "want": "improve", "margin": 0.0, **keys}]


def compared(root: Path, skill: float = SMALL, **keys: Any) -> tuple[StagePlan, dict[str, Any]]:
    plan = make_plans(root, tiers=("tasks",), objective=improve(**keys), steps=(10, 20))["second"]
    write_stage_of(plan, {step: {"skill": skill} for step in (10, 20)})
    return plan, read(plan.step_folder(20) / "bridge_deltas.json")


def test_undecided_accuracy_says_what_its_companion_says(tmp_path: Path) -> None:
    plan, content = compared(tmp_path)
    (objective,) = content["objectives"]
    assert objective["verdict"] == content["verdict"] == "undecided"
    secondary = objective["secondary"]
    assert (secondary["metric"], secondary["shows"]) == (BITS, "better")
    assert secondary["low"] < secondary["delta"] < secondary["high"] < 0
    said = "accuracy undecided; gold bits per byte better by "
    assert secondary["sentence"].startswith(said)
    advice = read(plan.results / "recommendation.json")
    assert advice["verdict"] == "undecided"
    (line,) = advice["secondary"]
    assert line.startswith(said)
    assert line != secondary["sentence"]  # at the level of both steps together, so wider
    assert f"\n{line}\n" in bridge_table({plan.name: plan})


def test_a_companion_is_in_no_family_of_tests(tmp_path: Path) -> None:
    _, content = compared(tmp_path)
    rows = {(row["item"], row["metric"]): row for row in content["deltas"]}
    for item in ("quiz", "exam", "overall"):
        row = rows[item, BITS]
        assert (row["primary"], row["flag"], row["p_holm"]) == (False, None, None)
        assert row["want"] == "<= 0"
        assert row["low"] < row["delta"] < row["high"]
    both = [rows[item, BITS]["delta"] for item in ("quiz", "exam")]
    assert rows["overall", BITS]["delta"] == pytest.approx(np.mean(both))
    assert rows["exam", BITS]["clusters"] == 20
    primary = [row for row in content["deltas"] if row["primary"]]
    assert {row["metric"] for row in primary} == {"delta_acc"}


def test_an_objective_may_name_a_secondary_metric(tmp_path: Path) -> None:
    plan, content = compared(tmp_path, metric="gold_bits_per_byte")
    (objective,) = content["objectives"]
    assert (objective["verdict"], objective["metric"]) == ("met", BITS)
    assert objective["secondary"] is None
    advice = read(plan.results / "recommendation.json")
    assert (advice["verdict"], advice["headline"]["metric"]) == ("met", "gold_bits_per_byte")
    assert advice["secondary"] == []


def test_a_loss_of_a_companion_breaks_a_keep(tmp_path: Path) -> None:
    _, content = compared(tmp_path, -1.0, want="keep", margin=0.001, metric="correct_probability")
    (objective,) = content["objectives"]
    assert (objective["verdict"], objective["regressions"]) == ("not met", ["quiz", "exam"])


def test_without_candidates_a_secondary_metric_decides_nothing(tmp_path: Path) -> None:
    objectives = improve(metric="margin")
    plan = make_plans(tmp_path, tiers=("tasks",), objective=objectives, command="launch")["second"]
    for folder, step in ((plan.bridge_folder, 100), (plan.step_folder(10), 10)):
        write_side(folder, plan, step=step, seed=step, per_item=False, protocol="external: launch")
    with pytest.raises(BridgeError, match="score both sides with per-item tables"):
        write_deltas(plan, 10)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"metric": "gold_bits_per_bite"}, "did you mean gold_bits_per_byte"),
        ({"tier": "tier2", "metric": "margin"}, "tier2 has no objective by 'margin'"),
    ],
)
def test_an_unknown_metric_is_refused(tmp_path: Path, keys: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        make_plans(tmp_path, objective=improve(**keys))


def test_files_are_read_as_they_are_computed(tmp_path: Path) -> None:
    plan = make_plans(tmp_path, tiers=("tasks",))["second"]
    folder = write_side(plan.step_folder(10), plan, step=10)
    quiz = read_results(folder, plan.tiers).tiers["tier3"].items["quiz"]
    table = pq.read_table(folder / "tier3_cf_candidates.parquet")
    wanted = choice_measures(table.filter(np.array(table["task"]) == "quiz"))
    for name, values in quiz.secondary.values.items():
        assert values == pytest.approx(wanted[name])
    assert quiz.light().secondary is None
