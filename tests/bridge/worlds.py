"""Worlds whose truth is known, written from what is claimed, not from how it is computed.

Each draws two sides' results of tasks and gives the mean's estimate by the code that decides real stages.
"""

from collections.abc import Callable

import numpy as np

from evaluation.bridge.estimate import Estimate
from evaluation.bridge.pairs import estimate_of
from evaluation.bridge.ranking import rank
from evaluation.bridge.simultaneous_intervals import leaves
from evaluation.bridge.weighted_mean import macro_mean
from evaluation.metrics.differences import Differences
from evaluation.metrics.layout import Layout

Dice = np.random.Generator
Draw = Callable[[Dice], Estimate]


def passes(gains: np.ndarray, layout: Layout) -> Differences:
    """Items that pass or fail: -1, 0 or 1."""
    return Differences(kind="credit", amounts=gains, layout=layout, passes=True)


def flips(dice: Dice, shared: np.ndarray, share: float = 0.3) -> np.ndarray:
    """Differences of outcomes of mean zero: `share` of items differ, whose sign `shared` decides in part."""
    own = dice.normal(0, 1, len(shared))
    return np.where(dice.random(len(shared)) < share, np.sign(shared + 0.7 * own), 0.0)


def same_task_under_names(names: int, questions: int = 60) -> Draw:
    """One task in a suite under several names: no name adds any information."""

    def draw(dice: Dice) -> Estimate:
        d = flips(dice, np.zeros(questions))
        layout = [Layout(questions, None, None, [[f"row {i}" for i in range(questions)]])] * names
        return macro_mean({str(k): estimate_of(passes(d, one)) for k, one in enumerate(layout)})

    return draw


def same_questions_asked_differently(tasks: int = 3, questions: int = 200) -> Draw:
    """GSM8K with 0, 4 and 8 solved examples, and another task of its own."""

    def draw(dice: Dice) -> Estimate:
        rows = dice.normal(0, 1, questions)
        parts = {
            str(k): estimate_of(
                passes(
                    flips(dice, rows, 0.4),
                    Layout(questions, None, None, [[f"row {i}" for i in range(questions)]]),
                )
            )
            for k in range(tasks)
        }
        other = Layout(questions, None, None, [[f"other {i}" for i in range(questions)]])
        parts["other"] = estimate_of(passes(flips(dice, np.zeros(questions)), other))
        return macro_mean(parts)

    return draw


def one_task_at_lengths(lengths: int = 6, questions: int = 50) -> Draw:
    """RULER: the same questions at several lengths, which are strata."""

    def draw(dice: Dice) -> Estimate:
        rows = dice.normal(0, 1, questions)
        d = np.concatenate([flips(dice, rows, 0.5) for _ in range(lengths)])
        strata = np.repeat([str(one) for one in range(lengths)], questions).tolist()
        names = [f"row {i}" for _ in range(lengths) for i in range(questions)]
        return estimate_of(passes(d, Layout(len(d), None, strata, [names])))

    return draw


def templates(groups: int = 100, size: int = 20) -> Draw:
    """GSM-Symbolic: questions of one template vary together."""

    def draw(dice: Dice) -> Estimate:
        d = flips(dice, np.repeat(dice.normal(0, 0.6, groups), size))
        clusters = np.repeat([str(one) for one in range(groups)], size).tolist()
        return estimate_of(passes(d, Layout(len(d), clusters)))

    return draw


def tiny_tasks(tasks: int = 3, questions: int = 4) -> Draw:
    """The mean of few tasks of few questions, each a real number."""

    def draw(dice: Dice) -> Estimate:
        parts = {}
        for k in range(tasks):
            layout = Layout(questions, None, None, [[f"{k} {i}" for i in range(questions)]])
            found = Differences(kind="measure", amounts=dice.normal(0, 1, questions), layout=layout)
            parts[str(k)] = estimate_of(found)
        return macro_mean(parts)

    return draw


def skewed(n: int = 200) -> Draw:
    """Many small gains, few large losses, of mean zero."""

    def draw(dice: Dice) -> Estimate:
        d = np.exp(0.125) - dice.lognormal(0, 0.5, n)
        return estimate_of(Differences(kind="measure", amounts=d, layout=Layout(n)))

    return draw


WORLDS: dict[str, Draw] = {
    "one task under 4 names": same_task_under_names(4),
    "3 tasks ask the same questions, a fourth others": same_questions_asked_differently(),
    "one task at 6 lengths": one_task_at_lengths(),
    "100 templates of 20 questions": templates(),
    "mean of 3 tasks of 4 questions": tiny_tasks(),
    "mean of 12 tasks of 4 questions": tiny_tasks(12),
    "skewed, 200 items": skewed(),
}
"""Estimates of differences whose truth is zero, by name."""


def errors(draw: Draw, count: int, seed: int) -> tuple[float, float, float]:
    """Shares of draws in which zero is below the interval, above it, and in it."""
    dice = np.random.default_rng(seed)
    found = [draw(dice) for _ in range(count)]
    known = [(one.low, one.high) for one in found if one.low is not None and one.high is not None]
    above, below = sum(low > 0 for low, _ in known), sum(high < 0 for _, high in known)
    return above / count, below / count, 1 - (above + below) / count


def by_passage(dice: Dice, steps: int, passages: int = 60, size: int = 5) -> list[Differences]:
    """Steps of one skill that differ by passage, against a bridge whose noise is item by item."""
    clusters = np.repeat([str(one) for one in range(passages)], size).tolist()
    layout = Layout(passages * size, clusters)
    bridge = dice.normal(0, 1, layout.size)
    return [
        Differences(
            kind="measure",
            amounts=np.repeat(dice.normal(0, 0.5, passages), size) - bridge,
            layout=layout,
        )
        for _ in range(steps)
    ]


def text_of_steps(dice: Dice, steps: int, carry: float, blocks: int = 300) -> list[Differences]:
    """Steps whose own noise carries over to the next block, against a bridge whose noise does not."""
    layout, tokens = Layout(blocks, is_text=True), np.full(blocks, 64.0)
    bridge = dice.normal(0, 1, blocks)
    found = []
    for _ in range(steps):
        noise = dice.normal(0, 0.5, blocks)
        for i in range(1, blocks):
            noise[i] += carry * noise[i - 1]
        amounts = (noise - bridge) * tokens
        found.append(Differences(kind="ratio", amounts=amounts, weights=tokens, layout=layout))
    return found


EQUAL_STEPS: dict[str, Callable[[Dice], list[Differences]]] = {
    "6 steps that differ by passage": lambda dice: by_passage(dice, 6),
    "2 steps, noise carries over by .4": lambda dice: text_of_steps(dice, 2, 0.4),
    "2 steps, noise carries over by .8": lambda dice: text_of_steps(dice, 2, 0.8),
}
"""Steps of one skill, whose own noise is dependent where the bridge's is not."""


def called_behind(draw: Callable[[Dice], list[Differences]], count: int, seed: int) -> float:
    """Share of draws in which an equal step is called behind another one."""
    dice, behind = np.random.default_rng(seed), 0
    for _ in range(count):
        found = [estimate_of(one) for one in draw(dice)]
        ranking = rank(found, [leaves(one, "it") for one in found], "it", 1)
        behind += ranking is not None and bool(ranking.behind.any())
    return behind / count
