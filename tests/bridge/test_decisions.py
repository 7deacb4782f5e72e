"""The whole decision, from items to the recommendation, over stages of known truth.

Seeds are fixed, so that a test gives the same on every run. A figure is contradicted where what was
counted would be so far beyond it in one of a thousand such tests, were it just true; what would be
said without correction is contradicted, so these tests can fail.
`python -m benchmarks.decisions` does the same at ten times the size.
"""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import binom

from evaluation.bridge.decision import Decision, decide
from evaluation.bridge.estimate import Estimate, by_t
from evaluation.bridge.recommendation import recommend
from tests.bridge.simulation import IMPROVE, KEEP, World, draw_deltas, simulate

STAGES = {1: 2000, 6: 1500, 22: 200}
"""Stages drawn with so many steps."""

FEWER = {1: 2000, 6: 350, 22: 80}
"""The same where what is told apart is larger."""

STEPS = tuple(STAGES)

GAIN = 0.0366
"""What the test of one step finds with 80 %."""

MET, COVERED, EXCLUDED, POWER = 0.035, 0.94, 0.05, 0.8
"""At most, at least, at most and at least: the figures that are held."""

FAR = 0.001
"""Chance that a share which just holds is called contradicted."""


def is_above(share: float, most: float, stages: int) -> bool:
    """Whether so large a share of stages contradicts that it is `most` in truth."""
    return round(share * stages) > binom.ppf(1 - FAR, stages, most)


def is_below(share: float, least: float, stages: int) -> bool:
    return is_above(1 - share, 1 - least, stages)


@pytest.mark.parametrize("steps", STEPS)
def test_no_change(steps: int) -> None:
    stages = STAGES[steps]
    found = simulate(World(gains=[0.0] * steps), stages, seed=10 + steps)
    assert not is_above(found.met, MET, stages)
    assert not is_below(found.covered, COVERED, stages)
    assert not is_above(found.excluded, EXCLUDED, stages)
    if steps > 1:  # what this is for: it would be said without correction
        assert is_above(found.own_met, MET, stages)
        assert is_below(found.own_covered, COVERED, stages)


@pytest.mark.parametrize("steps", STEPS)
def test_a_planted_gain(steps: int) -> None:
    """Every step gains as much as one step's test finds with 80 %; the best of them is found."""
    stages = FEWER[steps]
    found = simulate(World(gains=[GAIN] * steps), stages, seed=20 + steps)
    assert not is_below(found.met, POWER, stages)
    assert not is_below(found.covered, COVERED, stages)
    assert not is_above(found.excluded, EXCLUDED, stages)


@pytest.mark.parametrize("steps", STEPS)
def test_a_planted_loss_of_just_the_margin(steps: int) -> None:
    world = World(gains=[0.05] * steps, losses=[KEEP.margin] * steps, objective=(IMPROVE, KEEP))
    stages = FEWER[steps]
    found = simulate(world, stages, seed=30 + steps)
    assert not is_above(found.met, MET, stages)
    assert not is_below(found.covered, COVERED, stages)


def test_steps_that_fall_short_of_different_objectives() -> None:
    world = World(
        gains=[0.0, 0.0, 0.0, 0.1, 0.1, 0.1],
        losses=[0.0, 0.0, 0.0, 0.02, 0.02, 0.02],
        objective=(IMPROVE, KEEP),
    )
    assert not is_above(simulate(world, 350, seed=40).met, MET, 350)


def met_at_looks(seed: int, *, is_list: bool) -> tuple[list[set[int]], list[float]]:
    """Who is met at each look at a stage, one after each step, and the level of the first step."""
    world = World(gains=[0.04] * 6, tasks=2)
    deltas = draw_deltas(world, np.random.default_rng(seed))
    looks = [
        decide("s", (IMPROVE,), {s: deltas[s] for s in range(seen)}, 6 - seen if is_list else 0)
        for seen in range(1, 7)
    ]
    met = [{step.step for step in look.steps if step.verdict == "met"} for look in looks]
    return met, [look.alphas[0] for look in looks]


def test_what_a_look_finds_all_later_ones_find() -> None:
    """So looking costs nothing: who is met at some look is met at the end, whose error is known.

    It is not so where nobody knows how many steps are to come.
    """
    found, lost_if_open = 0, 0
    for seed in range(12):
        met, levels = met_at_looks(seed, is_list=True)
        found += sum(map(len, met[:-1]))
        assert all(before <= later for before, later in pairwise(met))
        assert levels[0] == pytest.approx(0.05 / 6)
        assert all(later > 0.99 * before for before, later in pairwise(levels))
        met_if_open, _ = met_at_looks(seed, is_list=False)
        lost_if_open += sum(len(before - later) for before, later in pairwise(met_if_open))
    assert found > 20
    assert lost_if_open > 0


def decided(world: World, seed: int, awaited: int = 0) -> Decision:
    return decide("s", world.objective, draw_deltas(world, np.random.default_rng(seed)), awaited)


def test_what_is_said_of_steps_to_come() -> None:
    world = World(gains=[0.0] * 2)
    known, unknown = (
        recommend("s", (IMPROVE,), decided(world, 4, 3), {0: "a", 1: "b"}, is_open=is_open)
        for is_open in (False, True)
    )
    assert "simultaneous intervals for all 5 decide" in known["corrected_for"]
    assert "3 of them are to come" in known["corrected_for"]
    assert "judged again after each new checkpoint" in unknown["corrected_for"]


def test_one_step_is_judged_by_its_own_interval() -> None:
    decision = decided(World(gains=[0.03]), 3)
    assert decision.alphas == pytest.approx([0.05])
    assert decision.steps[0].verdict == decision.steps[0].own_verdict


def test_steps_that_are_copies_cost_nothing() -> None:
    deltas = draw_deltas(World(gains=[0.03]), np.random.default_rng(4))[0]
    decision = decide("s", (IMPROVE,), dict.fromkeys(range(5), deltas))
    assert decision.alphas[0] == pytest.approx(0.05, rel=0.15)
    assert not decision.ranking().behind.any()
    assert (decision.ranking().p == 1).all()


def test_without_items_bonferroni_holds_and_nobody_is_called_behind() -> None:
    deltas = draw_deltas(World(gains=[0.0, 0.0], tasks=1), np.random.default_rng(5))
    given = by_t(Estimate(value=0.02, se=0.01, n=100, units=100, method="given"))
    bare = {s: [replace(one, estimate=given) for one in own] for s, own in deltas.items()}
    decision = decide("s", (IMPROVE,), bare)
    assert decision.alphas == pytest.approx([0.025])
    assert decision.ranking() is None
    assert len(recommend("s", (IMPROVE,), decision, {0: "", 1: ""})["similar"]) == 1
