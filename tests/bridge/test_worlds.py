"""Conclusions hold where questions, passages and neighbouring blocks are shared; seeds are fixed."""

from dataclasses import replace

import numpy as np
import pytest

from evaluation.bridge import ranking
from evaluation.bridge.delta import corrected, delta_of
from evaluation.bridge.estimate import Estimate
from evaluation.bridge.pairs import estimate_of
from evaluation.bridge.ranking import rank
from evaluation.bridge.simultaneous_intervals import leaves
from evaluation.bridge.weighted_mean import macro_mean
from evaluation.metrics.differences import Differences
from evaluation.metrics.layout import Layout, shared_groups
from evaluation.settings.tiers import TIERS
from tests.bridge.paired import paired_measure
from tests.bridge.worlds import EQUAL_STEPS, WORLDS, called_behind, errors

DRAWS = 300


@pytest.mark.parametrize("name", WORLDS)
def test_intervals_miss_as_often_as_they_may(name: str) -> None:
    above, below, covered = errors(WORLDS[name], DRAWS, 1)
    assert max(above, below) <= 0.055, "2.5 % and three standard errors"
    assert covered >= 0.915


def test_a_mean_is_the_sum_of_its_rows_by_hand() -> None:
    """Two tasks that share two of their four rows: the variance of what each row contributes."""
    a, b = np.array([1.0, 0.0, 2.0, -1.0]), np.array([0.5, -0.5, 1.0, 3.0])
    rows = list("pqrs"), list("rstu")
    parts = [
        estimate_of(Differences(kind="measure", amounts=d, layout=Layout(4, None, None, [names])))
        for d, names in zip((a, b), rows, strict=True)
    ]
    by_row = dict.fromkeys("pqrstu", 0.0)
    for d, names in zip((a, b), rows, strict=True):
        for value, name in zip(d - d.mean(), names, strict=True):
            by_row[name] += value / 4 / 2
    known = macro_mean({"a": parts[0], "b": parts[1]})
    assert known.se == pytest.approx(np.sqrt(4 / 3 * sum(x**2 for x in by_row.values())))
    assert sum(known.shares.values()) == pytest.approx(1)
    alone = macro_mean({"a": parts[0], "b": paired_measure(b, 0 * b)})
    assert alone.se == pytest.approx(np.hypot(parts[0].se, parts[1].se) / 2)


def test_rows_are_joined_by_any_name_they_share() -> None:
    layouts = (
        Layout(3, ["x", "x", "y"], None, [["a", None, "b"], [None, "r", None]]),
        Layout(2, None, None, [["c", "d"], ["r", "s"]]),
    )
    first, second = shared_groups(layouts)
    assert first[0] == first[1] == second[0]
    assert len({first[0], first[2], second[1]}) == 3
    assert shared_groups((layouts[0], Layout(2, None, None, [["c", "d"]]))) is None


@pytest.mark.parametrize("name", EQUAL_STEPS)
def test_equal_steps_are_rarely_behind(name: str) -> None:
    assert called_behind(EQUAL_STEPS[name], 150, 5) <= 0.11, "5 %, and three standard errors"


def few_and_many(dice: np.random.Generator, steps: int, n: int, binary: bool) -> list[Estimate]:
    bridge = dice.random(n)
    found = []
    for _ in range(steps):
        ours = bridge + dice.normal(dice.normal(0, 0.1), 0.2, n)
        amounts = (ours > 0.5) * 1.0 - (bridge > 0.5) if binary else ours - bridge
        kind = "credit" if binary else "measure"
        of = Differences(kind=kind, amounts=amounts, layout=Layout(n), passes=binary)
        found.append(estimate_of(of))
    return found


@pytest.mark.parametrize("steps", [3, 12, 30])
@pytest.mark.parametrize("binary", [True, False])
def test_pairs_of_the_chosen_step_are_as_among_all_pairs(
    steps: int, binary: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who is behind, at what p and interval, is the same whether or not others are estimated."""
    monkeypatch.setattr(ranking, "MOST_ESTIMATED", 2)
    for seed in range(6):
        found = few_and_many(np.random.default_rng(seed), steps, 400, binary)
        columns = [leaves(one, "it") for one in found]
        chosen = int(np.argmax([one.value for one in found]))
        every, own = (rank(found, columns, "it", 1, only) for only in (None, chosen))
        assert own.alpha == every.alpha
        assert (own.p[:, chosen] == every.p[:, chosen]).all()
        assert own.behind[:, chosen].tolist() == every.behind[:, chosen].tolist()
        for step in {*range(steps)} - {chosen}:
            assert own.interval(step, chosen) == every.interval(step, chosen)


def test_groups_are_tested_together() -> None:
    """Eight groups and nothing true: raw p-values flag one in a third of steps."""
    dice, flagged = np.random.default_rng(2), 0
    for _ in range(300):
        deltas = []
        for k in range(8):
            d = dice.normal(0, 1, 50)
            one = delta_of(
                TIERS["tier3"], f"g{k} (group)", None, "acc", (0.5, 0.5), paired_measure(d, 0 * d)
            )
            deltas.append(replace(one, primary=False))
        flagged += any(one.flag != "unclear" for one in corrected(deltas))
    assert flagged / 300 <= 0.085
