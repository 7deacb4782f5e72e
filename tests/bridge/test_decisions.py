"""Stages decided together: what depends on the steps beside a step. Their errors are in `worlds`."""

import itertools
from itertools import pairwise

import numpy as np
import pytest

from evaluation.bridge.choice import against
from evaluation.bridge.decision import decide
from evaluation.bridge.delta import corrected
from evaluation.bridge.estimate import ALPHA
from evaluation.bridge.recommendation import recommend
from evaluation.bridge.verdicts import objective_verdicts
from tests.bridge.worlds import IMPROVE, KEEP, KEEP_LOSS, drawn


def test_what_a_look_finds_all_later_ones_find() -> None:
    """Of a list of six steps, as it is known how many follow."""
    found = 0
    for seed in range(6):
        deltas = drawn([0.04] * 6, (), 0, np.random.default_rng(seed))
        seen = [{step: deltas[step] for step in range(count)} for count in range(1, 7)]
        looks = [decide("s", (IMPROVE,), so_far, 6 - len(so_far)) for so_far in seen]
        met = [{one.step for one in look.steps if one.verdict == "met"} for look in looks]
        assert all(before <= later for before, later in pairwise(met))
        assert looks[0].alphas[0] == pytest.approx(ALPHA / 6)
        found += sum(map(len, met[:-1]))
    assert found > 10


@pytest.mark.parametrize("seed", range(12))
def test_keep_by_0_holds_wherever_improve_by_0_is_met(seed: int) -> None:
    """But for an item that is significantly worse, which both list."""
    dice = np.random.default_rng(seed)
    goals = [IMPROVE, KEEP.model_copy(update={"margin": 0.0})]
    for gain, task in itertools.product((0.0, 0.03, 0.1), ([], ["task 0"])):
        deltas = drawn([gain], (), 0, dice)[0]
        chosen = [one for one in deltas if not task or one.item in task]
        improve, keep = objective_verdicts(goals, chosen, "s")
        assert {*keep.regressions} <= {*improve.regressions}
        assert improve.verdict != "met" or keep.verdict == "met" or keep.regressions


@pytest.mark.parametrize("seed", range(12))
def test_no_two_parts_of_a_stage_contradict(seed: int) -> None:
    """Verdicts of steps and stage, flags, the choice, who is like it and who is behind it."""
    dice = np.random.default_rng(seed)
    steps = int(dice.integers(1, 6))
    gains, losses = dice.normal(0, 0.04, steps).tolist(), dice.normal(0, 0.02, steps).tolist()
    goals = (IMPROVE, KEEP_LOSS) if seed % 2 else (IMPROVE,)
    deltas = {s: corrected(own) for s, own in drawn(gains, losses, 0, dice).items()}
    decision = decide("s", goals, deltas)
    advice = recommend("s", goals, decision, dict.fromkeys(deltas, ""))
    verdicts = {step.step: step.verdict for step in decision.steps}
    order = ("not met", "undecided", "met")
    best = max(order.index(verdict) for verdict in verdicts.values())
    assert advice["verdict"] == verdicts[advice["step"]] == order[best]
    similar = {one["step"] for one in advice["similar"]}
    assert advice["step"] not in similar
    for step in decision.steps:
        assert step.verdict in ("undecided", step.own_verdict)
        alone = objective_verdicts(goals, deltas[step.step], "s")  # others make no loss smaller
        assert [row.regressions for row in step.objectives] == [row.regressions for row in alone]
    of_its_verdict = {step for step, verdict in verdicts.items() if verdict == advice["verdict"]}
    kept = {step.step for step in decision.steps if not step.breaks_a_keep}
    for step in (of_its_verdict & kept) - similar - {advice["step"]}:
        pair = against(*(decision.decisive[one].estimate for one in (step, advice["step"])))
        assert pair.high < 0, "as `compare` of the two says"
    for delta in (one for own in deltas.values() for one in own if one.flag != "unclear"):
        assert (delta.estimate.low > 0) != (delta.estimate.high < 0)
        assert (delta.gain > 0) == (delta.flag == "better")
