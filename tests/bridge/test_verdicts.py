"""Verdicts from deltas with given intervals."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from evaluation.bridge.decision import Decision, JudgedStep
from evaluation.bridge.delta import Delta, corrected
from evaluation.bridge.estimate import ALPHA, Estimate, at_alpha
from evaluation.bridge.exact_tests import PairCounts
from evaluation.bridge.paired import FEW
from evaluation.bridge.recommendation import choose, recommend
from evaluation.bridge.verdicts import ObjectiveVerdict, conjunction, objective_verdicts
from evaluation.results.objective_rows import ObjectiveRow
from evaluation.settings.objectives import Objective
from tests.bridge.folders import accuracy_delta
from tests.bridge.paired import paired_rate


def accuracy(item: str, value: float, se: float) -> Delta:
    bounds = {} if se else {"low": value, "high": value, "p": 1.0}
    given = Estimate(value=value, se=se, n=100, units=100, method="given", **bounds)
    return accuracy_delta(item, at_alpha(given, ALPHA))


def nats(item: str, value: float, se: float) -> Delta:
    delta = accuracy(item, value, se)
    return replace(delta, tier="tier2", metric="delta_nats_per_token")


def verdict_on(tier: str, want: str, margin: float, *, deltas: Sequence[Delta]) -> ObjectiveRow:
    objective = {"tier": tier, "want": want, "margin": margin}
    return objective_verdicts([Objective.model_validate(objective)], deltas, "stage")[0]


@pytest.mark.parametrize(
    ("want", "margin", "value", "answer"),
    [
        ("improve", 0.0, 0.03, "met"),
        ("improve", 0.02, 0.03, "undecided"),
        ("improve", 0.0, 0.01, "undecided"),
        ("improve", 0.0, -0.03, "not met"),
        ("improve", 0.05, 0.03, "not met"),
        ("keep", 0.01, 0.0, "undecided"),
        ("keep", 0.03, 0.0, "met"),
        ("keep", 0.01, 0.03, "met"),
        ("keep", 0.01, -0.04, "not met"),
    ],
)
def test_answers_for_an_interval_of_two_points(
    want: str, margin: float, value: float, answer: ObjectiveVerdict
) -> None:
    """se 0.01: the interval reaches 0.0196 to both sides."""
    verdict = verdict_on("tier3", want, margin, deltas=[accuracy("a", value, 0.01)])
    assert verdict.verdict == answer
    assert verdict.margin == margin
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


@pytest.mark.parametrize(
    ("gains", "second", "why"),
    [
        ({1: (0.05, 0.0), 2: (0.06, 0.0), 3: (0.2, -0.1)}, 1, "not significantly different"),
        ({1: (-0.01, 0.0), 2: (0.2, -0.1)}, 2, "which loses what the objective keeps"),
        ({1: (0.05, 0.0), 2: (0.1, -0.0195)}, 2, "whose objective is undecided"),
        ({1: (0.05, 0.0)}, None, None),
    ],
)
def test_the_runner_up_is_chosen_by_the_same_rule(
    gains: dict[int, tuple[float, float]], second: int | None, why: str | None
) -> None:
    steps = [judged(step, *both) for step, both in gains.items()]
    decisive = [accuracy("a", gain, 0.01) for gain, _ in gains.values()]
    objective = Objective.model_validate({"tier": "tier3", "want": "improve", "margin": 0.0})
    decision = Decision(
        steps=steps, decisive=decisive, alphas=[0.05], headline=0, objective=objective
    )
    advice = recommend("stage", [objective], decision, dict.fromkeys(gains, "path"))
    known = advice["runner_up"] or {"step": None, "why": None}
    assert (known["step"], known["why"]) == (second, why)


def test_an_undecided_step_speaks_before_one_that_is_known_to_gain_nothing() -> None:
    """Identical to the bridge is the better estimate here, and surely no improvement."""
    rows = [
        verdict_on("tier3", "improve", 0.0, deltas=[accuracy("a", *known)])
        for known in ((-0.001, 0.01), (0.0, 0.0))
    ]
    assert [row.verdict for row in rows] == ["undecided", "not met"]
    steps = [
        JudgedStep(step=i, verdict=row.verdict, objectives=[row]) for i, row in enumerate(rows)
    ]
    assert choose(steps, 0) == (steps[0], steps[:1])


def test_four_losses_of_seven_prove_nothing() -> None:
    """Exact p is 0.125, so no list may say `significantly worse`."""
    for losses, n, answer in ((4, 7, "undecided"), (9, 12, "not met")):
        d = np.array([1.0] * losses + [0.0] * (n - losses))
        few = replace(accuracy("probes", 0.0, 0.01), estimate=paired_rate(0 * d, d))
        kept = verdict_on("tier3", "keep", 0.0, deltas=[few])
        assert kept.verdict == answer
        assert (kept.regressions == ()) == (answer == "undecided")


@pytest.mark.parametrize("n", [7, 16, 30, 56])
@pytest.mark.parametrize("margin", [-0.05, -0.02, 0.0, 0.02, 0.05])
def test_true_error_of_a_claim_from_few_discordant_items(n: int, margin: float) -> None:
    """Over all outcomes, at the rate of losses where it is largest: 2.5 %, and a little more at a margin."""
    outcomes = [(w, x) for w in range(n + 1) for x in range(n + 1 - w) if w + x < FEW]
    said = [pair for pair in outcomes if PairCounts(*pair, n).beyond(margin, above=True) < 0.025]
    worst = 0.0
    for q in np.linspace(max(0.0, -margin), (1 - margin) / 2, 40):
        chances = [max(0.0, q + margin), q, max(0.0, 1 - margin - 2 * q)]
        drawn = stats.multinomial(n, chances)
        worst = max(worst, sum(float(drawn.pmf([w, x, n - w - x])) for w, x in said))
    assert worst <= (0.025 if margin == 0 else 0.037 if margin > 0 else 0.05)


def test_the_worse_list_is_the_table_s() -> None:
    """One family: what an `improve` lists is what the table flags, by the same correction."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        values = rng.normal(-0.01, 0.02, 6)
        deltas = [accuracy(str(i), value, 0.01) for i, value in enumerate(values)]
        deltas += [nats(f"s{i}", value, 0.01) for i, value in enumerate(rng.normal(0, 0.02, 3))]
        flags = {delta.item: delta.flag for delta in corrected(deltas)}
        listed = verdict_on("tier3", "improve", 0.0, deltas=deltas).regressions
        assert set(listed) == {str(i) for i in range(6) if flags[str(i)] == "worse"}
        beyond = verdict_on("tier3", "keep", 0.01, deltas=deltas).regressions
        assert set(beyond) <= set(listed)
