"""Worlds whose truth is known, written from what is claimed, not from how it is computed.

A world draws a stage, or one difference, judges it by the code that judges real ones, and tells whether
what is said is wrong and whether the interval holds the truth. `python -m benchmarks.decisions` makes the
table of docs/verdicts.md from them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import signal

from evaluation.bridge.choice import of_recipe
from evaluation.bridge.decision import decide
from evaluation.bridge.delta import Delta, delta_of
from evaluation.bridge.differences import Paired
from evaluation.bridge.estimate import Estimate, mean
from evaluation.bridge.paired import estimate_of
from evaluation.bridge.recommendation import recommend
from evaluation.bridge.verdicts import verdict_on
from evaluation.metrics.layout import Layout, numbered
from evaluation.metrics.variance import Floats
from evaluation.settings.objectives import Objective
from evaluation.settings.tiers import TIERS
from tests.bridge.paired import of_text, paired_mean, paired_rate

Dice = np.random.Generator

MET, BEHIND = "falsely met", "called behind"
POWER: tuple[str, float, float] = ("truly met", 1.0, 0.0)

IMPROVE = Objective.model_validate({"tier": "tier3", "want": "improve", "margin": 0.0})
KEEP = Objective.model_validate({"tier": "tier3", "want": "keep", "margin": 0.02})
KEEP_LOSS = Objective.model_validate({"tier": "tier2", "want": "keep", "margin": 0.02})


class Said(NamedTuple):
    """Whether what is said is wrong (of a world on power: right), and the interval holds the truth."""

    counted: bool
    covered: bool = True


Draw = Callable[[Dice], Said]


@dataclass(frozen=True)
class World:
    """A world; `counts` says what `Said.counted` counts, of which at most `most` may be."""

    name: str
    draw: Draw
    counts: str = MET
    most: float = 0.04
    least_covered: float = 0.925


def of_zero(estimate: Estimate) -> Said:
    """Of a true difference of zero."""
    if estimate.low is None or estimate.high is None:
        return Said(False)
    return Said(estimate.low > 0, estimate.low <= 0 <= estimate.high)


def flips(dice: Dice, shared: Floats, share: float = 0.3) -> Floats:
    """Differences of outcomes of mean zero: `share` of items differ, whose sign `shared` decides in part."""
    own = dice.normal(0, 1, len(shared))
    return np.where(dice.random(len(shared)) < share, np.sign(shared + 0.7 * own), 0.0)


def apart(task: str, d: Floats) -> tuple[Floats, list[str]]:
    """A task whose questions no other task asks."""
    return d, [f"{task}{i}" for i in range(len(d))]


def mean_of(tasks: Sequence[tuple[Floats, Sequence[str]]]) -> Estimate:
    """The mean over tasks that pass or fail, each with the names of its rows."""
    groups = numbered(tuple(Layout(len(d), sources=[[*names]]) for d, names in tasks))
    parts = (
        estimate_of(Paired(amounts=d, groups=own, credit=True, passes=True))
        for (d, _), own in zip(tasks, groups, strict=True)
    )
    return mean({str(k): part for k, part in enumerate(parts)})


def sharing(sizes: Sequence[int], rows: int, weight: float = 1.0) -> Draw:
    """Tasks that ask the first of the same rows."""

    def draw(dice: Dice) -> Said:
        common = weight * dice.normal(0, 1, rows)
        names = [f"row {i}" for i in range(rows)]
        tasks = [(flips(dice, np.resize(common, n)), np.resize(names, n).tolist()) for n in sizes]
        return of_zero(mean_of(tasks))

    return draw


def at_lengths(weight: float, lengths: int = 6, rows: int = 100) -> Draw:
    """One task of the same rows at several lengths, which are strata."""

    def draw(dice: Dice) -> Said:
        common = weight * dice.normal(0, 1, rows)
        d = np.concatenate([flips(dice, common) for _ in range(lengths)])
        strata = np.repeat([str(one) for one in range(lengths)], rows).tolist()
        names = [str(i) for _ in range(lengths) for i in range(rows)]
        layout = Layout(len(d), None, strata, [names])
        found = Paired(amounts=d, groups=layout.groups, credit=True, passes=True)
        return of_zero(estimate_of(found))

    return draw


def clustered(groups: int, size: int, strata: bool = False) -> Draw:
    """Questions of one passage vary together; or subjects have levels of their own, and are a fixed list."""

    def draw(dice: Dice) -> Said:
        names = np.repeat([str(one) for one in range(groups)], size).tolist()
        common = dice.normal(0, 1, groups)
        if strata:
            d = np.repeat(common - common.mean(), size) + dice.normal(0, 1, groups * size)
            return of_zero(paired_mean(d, 0 * d, None, names))
        d = flips(dice, np.repeat(common, size))
        return of_zero(paired_rate(d.clip(0), (-d).clip(0), names))

    return draw


def text(slices: int, blocks: int, noise: Callable[[Dice, int], Floats], gain: float = 0.0) -> Draw:
    """Losses of blocks, whose noise may carry over to the next ones."""

    def draw(dice: Dice) -> Said:
        parts = {str(k): of_text(noise(dice, blocks) + gain) for k in range(slices)}
        return of_zero(mean(parts))

    return draw


def carried(
    carry: float, lognormal: bool = False, white: float = 0.0
) -> Callable[[Dice, int], Floats]:
    """AR(1) noise of variance 1, with a share of white noise over it."""

    def noise(dice: Dice, n: int) -> Floats:
        own = dice.normal(0, 1, n + 200)
        if lognormal:
            own = (np.exp(0.5) - np.exp(own)) / 2.161
        own = signal.lfilter([np.sqrt(1 - carry**2)], [1.0, -carry], own)[200:]
        return np.sqrt(1 - white) * own + np.sqrt(white) * dice.normal(0, 1, n)

    return noise


def documents(size: int, noise: float) -> Callable[[Dice, int], Floats]:
    """Documents of so many blocks, which begin anywhere."""

    def draw(dice: Dice, n: int) -> Floats:
        start = int(dice.integers(size))
        levels = np.repeat(dice.normal(0, 1, n // size + 2), size)[start : start + n]
        return levels + dice.normal(0, noise, n)

    return draw


def skewed(n: int) -> Draw:
    """Bits per byte of answers: many small gains, few large losses."""

    def draw(dice: Dice) -> Said:
        d = np.exp(0.5) - dice.lognormal(0, 1, n)
        return of_zero(paired_mean(d, 0 * d))

    return draw


def samples(prompts: int, count: int) -> Draw:
    """Pass rates over several samples of a prompt."""

    def draw(dice: Dice) -> Said:
        chance = dice.beta(0.5, 0.5, prompts)
        ours, theirs = (dice.binomial(count, chance) / count for _ in range(2))
        return of_zero(paired_rate(ours, theirs))

    return draw


def few_lose(dice: Dice) -> Said:
    """30 prompts, of which 8 in 9 gain 1/16 and one in 9 loses 1/2."""
    d = np.where(dice.random(30) < 8 / 9, 1 / 16, -0.5)
    return of_zero(paired_rate(d.clip(0), (-d).clip(0)))


def changed(dice: Dice, n: int, wins: float, losses: float) -> Floats:
    return dice.choice([1.0, -1.0, 0.0], n, p=[wins, losses, 1 - wins - losses])


def rate(n: int, gain: float = 0.0, discordant: float = 0.2) -> Draw:
    """Questions that pass or fail."""

    def draw(dice: Dice) -> Said:
        d = changed(dice, n, (discordant + gain) / 2, (discordant - gain) / 2)
        return of_zero(paired_rate(d.clip(0), (-d).clip(0)))

    return draw


def kept(n: int, large: int = 0, losses_only: bool = False) -> Draw:
    """A task that loses just the margin; with `large`, in the mean with a large one that loses nothing."""

    def draw(dice: Dice) -> Said:
        loss = KEEP.margin * (2 if large else 1)
        gains = 0.0 if losses_only else 0.05
        tasks = [apart("a", changed(dice, n, gains, gains + loss))]
        if large:
            tasks.append(apart("b", flips(dice, np.zeros(large), 0.1)))
        found = mean_of(tasks)
        covered = found.low is None or found.low <= -KEEP.margin <= (found.high or 0)
        return Said(verdict_on(KEEP, found) == "met", covered)

    return draw


def saturated(dice: Dice) -> Said:
    """The mean of 300 questions and 16 that are nearly always right on both sides."""
    few = changed(dice, 16, 0.01, 0.01)
    return of_zero(mean_of([apart("a", flips(dice, np.zeros(300), 0.1)), apart("b", few)]))


def outliers(dice: Dice) -> Said:
    """1 % of 164 questions lose as much as all others gain."""
    d = np.where(dice.random(164) < 0.01, -0.99, 0.01) + dice.normal(0, 0.01, 164)
    return of_zero(paired_mean(d, 0 * d))


def drawn(
    gains: Sequence[float], losses: Sequence[float], groups: int, dice: Dice
) -> dict[int, list[Delta]]:
    """Steps with these true gains, on 4 tasks of 300 questions, or of passages of 10, and a slice."""
    deltas: dict[int, list[Delta]] = {step: [] for step in range(len(gains))}
    for task in range(4):
        names = [str(i // 10) for i in range(10 * groups)] if groups else None
        n = 10 * groups or 300
        layout = numbered((Layout(n, names),))[0]
        easy, common = dice.normal(0, 1, n), dice.normal(0, 0.3, n)
        bridge = easy + dice.normal(0, 0.5, n) > 0
        for step, gain in enumerate(gains):
            own = common + dice.normal(0, 0.4, n)
            if names:
                own += np.repeat(dice.normal(0, 0.3, groups), 10)
            ours = easy + own + gain * np.sqrt(2 * np.pi * 1.25) > 0
            d = ours.astype(float) - bridge
            one = estimate_of(Paired(amounts=d, groups=layout, credit=True, passes=True))
            values = float(ours.mean()), float(bridge.mean())
            deltas[step].append(delta_of(TIERS["tier3"], f"task {task}", None, "acc", values, one))
    common = dice.normal(0, 0.06, 150)
    for step, loss in enumerate(losses):
        one = of_text(loss + common + dice.normal(0, 0.06, 150))
        values = 3.0 + one.value, 3.0
        deltas[step].append(delta_of(TIERS["tier2"], "web", None, "nats_per_token", values, one))
    return deltas


def chosen(truths: Sequence[float], want: Objective = IMPROVE, groups: int = 0) -> Draw:
    """Whether a stage's chosen step is falsely met, and its interval holds its true gain."""

    def draw(dice: Dice) -> Said:
        decision = decide("s", (want,), drawn(truths, (), groups, dice))
        content = recommend("s", (want,), decision, dict.fromkeys(range(len(truths)), ""))
        step, head = content["step"], content["headline"]
        return Said(content["verdict"] == "met", head["low"] <= truths[step] <= head["high"])

    return draw


def behind(steps: int) -> Draw:
    """Whether one of several equal steps is called significantly behind."""

    def draw(dice: Dice) -> Said:
        decision = decide("s", (IMPROVE,), drawn([0.0] * steps, (), 0, dice))
        content = recommend("s", (IMPROVE,), decision, dict.fromkeys(range(steps), ""))
        alike = [step for step in decision.steps if step.verdict == content["verdict"]]
        return Said(len(alike) > 1 + len(content["similar"]))

    return draw


def recipe(steps: int, noise: float) -> Draw:
    """Levels of checkpoints scatter about that of one recipe, as the bridge's does; 4,000 questions."""

    def draw(dice: Dice) -> Said:
        bridge = dice.normal(0, 0.3, 4000) + dice.normal(0, noise)
        sides = [dice.normal(0, 0.3, 4000) + dice.normal(0, noise) for _ in range(steps)]
        found = [paired_mean(one, bridge) for one in sides]
        known = of_recipe(found[-1], [one.value for one in found])
        assert known is not None
        return Said(known.low > 0, known.low <= 0 <= known.high)

    return draw


HIDDEN = carried(0.9, white=0.7)
SAMPLED = (8, 16), (30, 16), (164, 20)

WORLDS = (
    *(World(f"4×300 questions, steps: {k}", chosen([0.0] * k)) for k in (1, 2, 6, 22)),
    World("tasks that share questions", sharing((164, 164, 257, 378), 378)),
    *(World(f"6 lengths that share {w}", at_lengths(w)) for w in (0.5, 1.0)),
    World("3 tasks share 40 passages", sharing((200, 200, 200), 40)),
    *(World(f"clusters {g}×{n}", clustered(g, n)) for g, n in ((40, 10), (12, 20))),
    World("strata 12×25", clustered(12, 25, strata=True)),
    World("2 steps, clusters 40×10", chosen([0.0] * 2, groups=40)),
    World("text 5×200, AR .5", text(5, 200, carried(0.5))),
    World("text 5×200, AR .8 lognormal", text(5, 200, carried(0.8, lognormal=True))),
    World("text 1×1000, AR .9", text(1, 1000, carried(0.9))),
    World("text 1×300, documents of 8 blocks", text(1, 300, documents(8, 0.5))),
    World("text 1×1000, documents of 64 blocks under noise", text(1, 1000, documents(64, 3.0))),
    World("text 1×200, AR .9 under 70 % white noise", text(1, 200, HIDDEN), MET, 0.07, 0.86),
    *(World(f"bits per byte lognormal, n = {n}", skewed(n)) for n in (40, 300, 1319)),
    *(World(f"{n} prompts × {k} samples", samples(n, k)) for n, k in SAMPLED),
    World("30 prompts, most gain a little, few lose much", few_lose),
    *(World(f"rates, n = {n}", rate(n)) for n in (16, 30, 100)),
    World("mean of 300 questions and 16 nearly all right", saturated),
    World("the same, the 16 only lose, keep at its margin", kept(16, 300, losses_only=True)),
    *(World(f"keep at its margin, steps: {k}", chosen([-0.02] * k, KEEP)) for k in (1, 6)),
    *(World(f"keep at its margin, n = {n}", kept(n)) for n in (16, 100, 400)),
    *(World(f"equal steps: {k}", behind(k), BEHIND, most=0.06) for k in (6, 22)),
    *(World(f"recipe, {k} steps, noise 1 point", recipe(k, 0.01)) for k in (3, 6)),
    World("1 % outliers among 164", outliers, MET, 1.0, 0.0),
    World("power: 10,042 questions, +1 point", rate(10042, 0.01), *POWER),
    World("power: 1,319 questions, +2 points", rate(1319, 0.02), *POWER),
    World("power: white text, +.2 sd", text(1, 200, carried(0.0), 0.2), *POWER),
    World("power: white text 5×200, +.09 sd", text(5, 200, carried(0.0), 0.09), *POWER),
)


def shares(world: World, draws: int, seed: int) -> tuple[float, float]:
    """Shares of draws that are counted, and in which the interval holds the truth."""
    dice = np.random.default_rng(seed)
    found = [world.draw(dice) for _ in range(draws)]
    return tuple(float(np.mean(column)) for column in zip(*found, strict=True))  # type: ignore[return-value]
