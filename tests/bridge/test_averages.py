"""The mean over the last checkpoints: on simulated stages of known truth, and in the files."""

from pathlib import Path

import numpy as np
import pytest

from evaluation.bridge.averages import Noise, Scatter, mean_results, scatter, with_checkpoints
from evaluation.bridge.companions import recipe_row
from evaluation.bridge.delta import Delta, delta_of
from evaluation.bridge.estimate import Estimate
from evaluation.bridge.paired_binary import at_alpha, paired_rate
from evaluation.errors import ResultsError
from evaluation.reporting.terminal import bridge_table
from evaluation.results.delta_rows import Change
from evaluation.results.read import read_results
from evaluation.settings.objectives import Objective
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS
from tests.bridge.folders import make_plans, read, write_side, write_stage_of
from tests.bridge.paired import paired_measure

STEPS = (10, 20, 30)
OBJECTIVE = {"tier": "tier3", "want": "improve", "margin": 0.0, "average": 3}


def estimated(ours: np.ndarray, theirs: np.ndarray) -> Estimate:
    """Of checkpoints (k, n) against a bridge (n,), as `average_objective` puts it together."""
    single = [paired_measure(one, theirs) for one in ours]
    mean, count = paired_measure(ours.mean(axis=0), theirs), len(ours)
    return with_checkpoints(mean, [Noise(1 / count, scatter(single, "task"))])


@pytest.mark.parametrize("checkpoints", [3, 6])
@pytest.mark.parametrize("scatter", [0.0, 0.05, 0.2])
def test_intervals_cover_the_truth(checkpoints: int, scatter: float) -> None:
    """Items gain 0.1 on average, differ among each other and flicker; checkpoints scatter."""
    dice = np.random.default_rng([checkpoints, int(100 * scatter)])
    items, covered, covered_by_items = 200, 0, 0
    for _ in range(600):
        theirs = dice.normal(0, 1, items)
        gains = 0.1 + dice.normal(0, 0.5, items)
        shift = dice.normal(0, scatter, (checkpoints, 1))
        ours = theirs + gains + shift + dice.normal(0, 0.7, (checkpoints, items))
        known = estimated(ours, theirs)
        plain = paired_measure(ours.mean(axis=0), theirs)
        covered += known.low <= 0.1 <= known.high
        covered_by_items += plain.low <= 0.1 <= plain.high
    assert covered / 600 >= 0.93
    if scatter == 0.2:  # which counting items alone does not see
        assert covered_by_items / 600 < 0.7


def test_the_two_parts_by_hand() -> None:
    """Two items, two checkpoints: deltas 1 3 | 3 5, so means 2 and 4, and no flicker."""
    ours, theirs = np.array([[1.0, 3.0], [3.0, 5.0]]), np.zeros(2)
    single = [paired_measure(one, theirs) for one in ours]
    assert scatter(single, "task") == pytest.approx((2, 0, 2))  # s^2 = 2, of k = 2
    known = estimated(ours, theirs)
    assert known.value == 3
    assert known.se == pytest.approx(np.sqrt(1 + 1))  # items' means 2 and 4: s^2 / n = 1


@pytest.mark.parametrize(("between", "mostly_checkpoints"), [(0.0, False), (0.4, True)])
@pytest.mark.parametrize("alpha", [0.05, 0.001])
def test_a_recipe_is_never_surer_than_its_weights_and_within_100_points(
    between: float, mostly_checkpoints: bool, alpha: float
) -> None:
    """Whatever the number of checkpoints that the interval of the weights is corrected for."""
    delta = delta_of_passes(wins=3, losses=2, n=40)
    weights = at_alpha(delta.estimate, alpha)
    own = Change(
        tier="tier5", value=0.5, bridge_value=0.475, delta=0.025, low=weights.low, high=weights.high
    )
    goal = Objective(tier="tier5", want="improve", margin=0.0)
    row = recipe_row(goal, delta, own, Scatter(between, 0.0, 3), None)
    assert row is not None
    assert -1 <= row.low <= weights.low < weights.high <= row.high <= 1
    assert row.verdict == "undecided"
    assert (row.share_checkpoints > 0.9) == mostly_checkpoints
    assert (row.share_checkpoints == 0) != mostly_checkpoints


def delta_of_passes(*, wins: int, losses: int, n: int) -> Delta:
    ours, theirs = np.zeros(n), np.zeros(n)
    ours[:wins], theirs[wins : wins + losses] = 1.0, 1.0
    values = float(ours.mean()), float(theirs.mean())
    return delta_of(TIERS["tier5"], "task", None, "pass_rate", values, paired_rate(ours, theirs))


@pytest.fixture
def plan(tmp_path: Path) -> StagePlan:
    objectives = [OBJECTIVE, {"tier": "tier2", "want": "keep", "margin": 0.02, "average": 3}]
    objectives += [{**OBJECTIVE, "metric": "gold_bits_per_byte"}, {**OBJECTIVE, "average": 9}]
    plan = make_plans(tmp_path, tiers=("slices", "tasks"), objective=objectives)["second"]
    write_stage_of(plan, {step: {"skill": 0.3} for step in STEPS})
    return plan


def test_a_mean_stands_beside_the_last_checkpoint(plan: StagePlan) -> None:
    advice = read(plan.results / "recommendation.json")
    accuracy, nats, bits = advice["averages"]  # there are no nine checkpoints
    rows = read(plan.results / "bridge_deltas.json")["deltas"]
    for found in (accuracy, nats, bits):
        assert found["steps"] == [10, 20, 30]
        about = ("overall", found["metric"])
        own = [row["delta"] for row in rows if (row["item"], row["metric"]) == about]
        assert found["delta"] == pytest.approx(np.mean(own))
        assert found["low"] < found["delta"] < found["high"]
        assert found["se_items"] > 0
        assert found["se_checkpoints"] >= 0
    assert (accuracy["verdict"], bits["verdict"], nats["verdict"]) == ("met", "met", "met")
    said = "tier3 by the mean of the last 3 checkpoints: accuracy +"
    assert accuracy["sentence"].startswith(said)
    assert accuracy["sentence"] in bridge_table({plan.name: plan})
    assert {row["item"] for row in advice["noise"]} == {"web", "code", "quiz", "exam"}
    assert all(np.isfinite(row["level"]) for row in advice["noise"])


def test_a_mean_over_one_checkpoint_twice_is_itself(plan: StagePlan) -> None:
    side = read_results(plan.step_folder(10), plan.tiers)
    mean = mean_results([side, side])
    for name, tier in side.tiers.items():
        for item, one in tier.items.items():
            assert mean.tiers[name].items[item].values == pytest.approx(dict(one.values))
    write_side(plan.step_folder(20), plan, step=20, items=399)
    with pytest.raises(ResultsError, match=r"step_20: its questions are not those of"):
        mean_results([side, read_results(plan.step_folder(20), plan.tiers)])
