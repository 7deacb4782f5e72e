"""Verdicts from deltas with given intervals."""

from collections.abc import Sequence
from functools import partial

import pytest

from evaluation.bridge.decision import JudgedStep
from evaluation.bridge.delta import Delta, delta_of
from evaluation.bridge.estimate import ALPHA, Estimate, at_alpha
from evaluation.bridge.recommendation import choose
from evaluation.bridge.verdicts import ObjectiveVerdict, conjunction, objective_verdicts
from evaluation.results.deltas_file import ObjectiveRow
from evaluation.settings.objectives import Objective
from evaluation.settings.tiers import TIERS


def change(item: str, value: float, se: float, tier: str, metric: str) -> Delta:
    bounds = {} if se else {"low": value, "high": value, "p": 1.0}
    given = Estimate(value=value, se=se, n=100, units=100, method="given", **bounds)
    values = 0.5 + value, 0.5
    return delta_of(TIERS[tier], item, None, metric, values, at_alpha(given, ALPHA))


accuracy = partial(change, tier="tier3", metric="acc")
nats = partial(change, tier="tier2", metric="nats_per_token")


def verdict_on(tier: str, want: str, margin: float, *, deltas: Sequence[Delta]) -> ObjectiveRow:
    objective = {"tier": tier, "want": want, "margin": margin}
    return objective_verdicts([Objective.model_validate(objective)], deltas, "stage")[0]


@pytest.mark.parametrize(
    ("want", "margin", "value", "answer"),
    [
        ("improve", 0.0, 0.03, "met"),
        ("improve", 0.02, 0.03, "undecided"),
        ("improve", 0.0, -0.03, "not met"),
        ("keep", 0.01, 0.0, "undecided"),
        ("keep", 0.03, 0.0, "met"),
        ("keep", 0.01, -0.04, "not met"),
    ],
)
def test_answers_for_an_interval_of_two_points(
    want: str, margin: float, value: float, answer: ObjectiveVerdict
) -> None:
    """se 0.01: the interval reaches 0.0196 to both sides."""
    verdict = verdict_on("tier3", want, margin, deltas=[accuracy("a", value, 0.01)])
    assert verdict.verdict == answer
    mirrored = verdict_on("tier2", want, margin, deltas=[nats("a", -value, 0.01)])
    assert mirrored.verdict == answer
    assert mirrored.gain == pytest.approx(verdict.gain)


def test_a_loss_that_the_mean_hides_breaks_a_keep() -> None:
    deltas = [accuracy("up", 0.1, 0.005), accuracy("down", -0.05, 0.005)]
    kept = verdict_on("tier3", "keep", 0.01, deltas=deltas)
    assert kept.delta == pytest.approx(0.025)
    assert (kept.verdict, kept.regressions) == ("not met", ("down",))
    improved = verdict_on("tier3", "improve", 0.0, deltas=deltas)
    assert (improved.verdict, improved.regressions) == ("met", ("down",))
    assert verdict_on("tier3", "keep", 0.06, deltas=deltas).regressions == ()


def judged(step: int, gain: float, kept: float) -> JudgedStep:
    improve = verdict_on("tier3", "improve", 0.0, deltas=[accuracy("a", gain, 0.01)])
    keep = verdict_on("tier2", "keep", 0.02, deltas=[nats("a", -kept, 0.001)])
    whole = conjunction([improve.verdict, keep.verdict])
    return JudgedStep(step=step, verdict=whole, objectives=[improve, keep])


@pytest.mark.parametrize(
    ("gains", "chosen", "pool"),
    [
        ({1: (0.05, 0.0), 2: (0.06, 0.0), 3: (0.2, -0.1)}, 2, [1, 2]),  # the best that meets all
        ({1: (-0.01, 0.0), 2: (0.2, -0.1)}, 1, [1]),  # keeps what there was
        ({1: (0.1, -0.3), 2: (0.0, -0.1)}, 2, [1, 2]),  # all lose, this one least
        ({1: (0.05, 0.0), 2: (0.1, -0.0195)}, 1, [1]),  # met before undecided, if that gains more
    ],
)
def test_the_chosen_step(
    gains: dict[int, tuple[float, float]], chosen: int, pool: list[int]
) -> None:
    best, others = choose([judged(step, *both) for step, both in gains.items()], 0)
    assert (best.step, [step.step for step in others]) == (chosen, pool)
