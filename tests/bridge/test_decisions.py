"""Stages decided together: what depends on the steps beside a step. Their errors are in `worlds`."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from evaluation.bridge.choice import against
from evaluation.bridge.decision import Decision, decide
from evaluation.bridge.delta import corrected
from evaluation.bridge.estimate import ALPHA, Estimate, at_alpha
from evaluation.bridge.recommendation import recommend
from tests.bridge.worlds import IMPROVE, KEEP_LOSS, drawn


def looked(seed: int, seen: int, *, is_list: bool) -> Decision:
    """The look at the first steps of six; with a list it is known how many follow."""
    deltas = drawn([0.04] * 6, (), 0, np.random.default_rng(seed))
    so_far = {step: deltas[step] for step in range(seen)}
    return decide("s", (IMPROVE,), so_far, 6 - seen if is_list else 0)


def test_what_a_look_finds_all_later_ones_find() -> None:
    found, lost_if_open = 0, 0
    for seed in range(6):
        for is_list in (True, False):
            looks = [looked(seed, seen, is_list=is_list) for seen in range(1, 7)]
            met = [{one.step for one in look.steps if one.verdict == "met"} for look in looks]
            lost = sum(len(before - later) for before, later in pairwise(met))
            if is_list:
                assert lost == 0
                assert looks[0].alphas[0] == pytest.approx(ALPHA / 6)
                found += sum(map(len, met[:-1]))
            else:
                lost_if_open += lost
    assert found > 10
    assert lost_if_open > 0


def test_one_step_is_judged_by_its_own_interval_and_copies_cost_nothing() -> None:
    deltas = drawn([0.03], (), 0, np.random.default_rng(3))[0]
    decision = decide("s", (IMPROVE,), {0: deltas})
    assert decision.alphas == [ALPHA]
    assert decision.steps[0].verdict == decision.steps[0].own_verdict
    copies = decide("s", (IMPROVE,), dict.fromkeys(range(5), deltas))
    assert copies.alphas[0] == pytest.approx(ALPHA, rel=0.03)
    advice = recommend("s", (IMPROVE,), copies, dict.fromkeys(range(5), ""))
    assert [one["p"] for one in advice["similar"]] == [1] * 4


def test_without_items_bonferroni_holds_and_nobody_is_called_behind() -> None:
    deltas = drawn([0.0, 0.0], (), 0, np.random.default_rng(5))
    given = at_alpha(Estimate(value=0.02, se=0.01, n=100, units=100, method="given"), ALPHA)
    bare = {s: [replace(one, estimate=given) for one in own] for s, own in deltas.items()}
    decision = decide("s", (IMPROVE,), bare)
    assert decision.alphas == pytest.approx([ALPHA / 2])
    assert len(recommend("s", (IMPROVE,), decision, {0: "", 1: ""})["similar"]) == 1


def test_more_steps_make_no_regression_and_no_keep_easier() -> None:
    """A loss that one step shows stays a loss beside others."""
    goals = (IMPROVE, KEEP_LOSS)
    deltas = drawn([0.1] * 8, [0.1] * 8, 0, np.random.default_rng(6))
    many = decide("s", goals, deltas).steps
    assert {step.verdict for step in many} == {"not met"}
    assert all(step.objectives[1].regressions == ("web",) for step in many)
    for step in many:
        alone = decide("s", goals, {0: deltas[step.step]}).steps[0]
        assert alone.objectives[1].regressions == step.objectives[1].regressions


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
    of_its_verdict = {step for step, verdict in verdicts.items() if verdict == advice["verdict"]}
    kept = {step.step for step in decision.steps if not step.breaks_a_keep}
    for step in (of_its_verdict & kept) - similar - {advice["step"]}:
        pair = against(*(decision.decisive[one].estimate for one in (step, advice["step"])))
        assert pair.high < 0, "as `compare` of the two says"
    for delta in (one for own in deltas.values() for one in own if one.flag != "unclear"):
        assert (delta.estimate.low > 0) != (delta.estimate.high < 0)
        assert (delta.gain > 0) == (delta.flag == "better")
