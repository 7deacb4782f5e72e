"""python -m benchmarks.decisions: simulates how often the verdict of a stage is wrong.

Stages with a known truth are drawn, and decided by the code that decides real ones. The tests of
tests/bridge/simulation.py do the same at a tenth of the size. Seeds are fixed.
"""

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from evaluation.bridge.decision import decide
from evaluation.bridge.paired_binary import paired_rate
from evaluation.bridge.recommendation import choose
from evaluation.metrics.variance import Floats
from evaluation.reporting.terminal import as_table
from tests.bridge.paired import paired_measure
from tests.bridge.simulation import IMPROVE, KEEP, Counts, World, draw_deltas, meets, simulate
from tests.bridge.worlds import EQUAL_STEPS, WORLDS, called_behind, errors

LOOKS, LOOKED_AT = 20, 1_000
"""Number of interim looks at a stage, one after each checkpoint, and of simulated stages without effect."""

SKEWED = 10_000
"""Number of draws of each kind and size of differences."""

FEWER = 8_000
"""Number of draws of each world with shared questions."""

STAGES = {1: 20_000, 6: 7_000, 22: 2_000}
"""Number of simulated stages, by their number of steps."""

DETECTABLE = 0.0366
"""The MDE of a single step's test at 80 % power, with 4 tasks of 300 questions."""


def worlds(steps: int) -> Iterator[tuple[str, World]]:
    """Yield the simulated scenarios by name."""
    none = World(gains=[0.0] * steps)
    yield "no change", none
    yield "no change, 16 questions a task", replace(none, questions=16, tasks=10)
    yield "every step gains its MDE", World(gains=[DETECTABLE] * steps)
    yield "the last step alone gains its MDE", World(gains=[0.0] * (steps - 1) + [DETECTABLE])
    loses = {"losses": [KEEP.margin] * steps}
    yield "loses just the margin", replace(none, objective=(KEEP,), **loses)
    both = replace(none, gains=[0.1] * steps, objective=(IMPROVE, KEEP), **loses)
    yield "gains, and loses just the margin", both
    if half := steps // 2:
        gains = [0.0] * half + [0.1] * (steps - half)
        losses = [0.0] * half + [KEEP.margin] * (steps - half)
        divided = replace(both, gains=gains, losses=losses)
        yield "half gain nothing, half lose the margin", divided


def row(steps: int, name: str, found: Counts) -> list[str]:
    error = math.sqrt(0.05 * 0.95 / found.stages)
    shares = [found.met, found.own_met, found.met_wrongly, found.covered, found.own_covered]
    shares += [found.excluded, found.own_excluded]
    return [str(steps), name, *(f"{share:.1%}" for share in shares), f"± {error:.1%}"]


def looks(stages: int) -> Iterator[list[str]]:
    """Yield the table of how often any interim look gives a wrong `met`."""
    yield ["steps", "met wrongly at some look", "sd of a share of 5 %"]
    world = World(gains=[0.0] * LOOKS)
    for is_list in (True, False):
        dice = np.random.default_rng(LOOKS)
        wrong = sum(is_wrong_at_a_look(world, dice, is_list) for _ in range(stages)) / stages
        name = "a list" if is_list else "`all` or `every: N`"
        yield [name, f"{wrong:.1%}", f"± {math.sqrt(0.05 * 0.95 / stages):.1%}"]


def is_wrong_at_a_look(world: World, dice: np.random.Generator, is_list: bool) -> bool:
    """Return whether any look gives a wrong `met`; with a list, each look knows how many steps follow."""
    deltas = draw_deltas(world, dice)
    for seen in range(1, len(deltas) + 1):
        so_far = {step: deltas[step] for step in range(seen)}
        awaited = len(deltas) - seen if is_list else 0
        decision = decide("simulated", world.objective, so_far, awaited)
        chosen, _ = choose(decision.steps, decision.headline)
        if chosen.verdict == "met" and not meets(world, chosen.step):
            return True
    return False


def skewed(draws: int) -> Iterator[list[str]]:
    """Yield the table of how often a mean of zero is called a gain or a loss, if large losses are rare."""
    yield ["differences", "items", "better wrongly", "worse wrongly", "shown as skewed"]
    for name, draw in DIFFERENCES.items():
        for items in (12, 40, 200):
            dice = np.random.default_rng(items)
            of_zero = [draw(dice, items) for _ in range(draws)]
            test = paired_measure if "lognormal" in name else paired_rate  # credits are bounded
            found = [test(np.maximum(d, 0), np.maximum(-d, 0)) for d in of_zero]
            known = [one for one in found if one.low is not None and one.high is not None]
            yield [
                name,
                str(items),
                f"{sum(one.low > 0 for one in known) / draws:.1%}",  # type: ignore[operator]
                f"{sum(one.high < 0 for one in known) / draws:.1%}",  # type: ignore[operator]
                f"{sum(one.is_skewed for one in found) / draws:.0%}",
            ]


def shared(draws: int) -> Iterator[list[str]]:
    """Yield the table of intervals where questions are shared, clustered or few, and nothing is true."""
    yield ["world", "better wrongly", "worse wrongly", "covered"]
    for name, draw in WORLDS.items():
        yield [name, *(f"{share:.1%}" for share in errors(draw, draws, 11))]


def equal_steps(draws: int) -> Iterator[list[str]]:
    """Yield the table of how often one of several equal steps is called behind."""
    yield ["equal steps", "one is called behind"]
    for name, draw in EQUAL_STEPS.items():
        yield [name, f"{called_behind(draw, draws, 5):.1%}"]


DIFFERENCES: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "pass or fail, 1 in 5 turns": lambda d, n: d.choice([-1.0, 0, 0, 0, 0, 0, 0, 0, 0, 1], n),
    "means of 16 samples": lambda d, n: (d.binomial(16, 0.4, n) - d.binomial(16, 0.4, n)) / 16,
    "8 of 9 gain 1/16, one loses 1/2": lambda d, n: np.where(d.random(n) < 8 / 9, 1 / 16, -0.5),
    "lognormal losses, sigma 0.5": lambda d, n: math.exp(0.125) - d.lognormal(0, 0.5, n),
    "lognormal losses, sigma 1": lambda d, n: math.exp(0.5) - d.lognormal(0, 1, n),
}
"""Differences with a true mean of zero."""


HEADER = [
    "steps", "truth", "met", "(before)", "met wrongly", "chosen covered", "(before)",
    "equal step excluded", "(before)", "sd of a share of 5 %",
]  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decisions", description=__doc__)
    parser.add_argument("--share", type=float, default=1.0, help="of the stages to draw")
    share = parser.parse_args(arguments).share
    rows = [HEADER]
    for steps, stages in STAGES.items():
        for name, world in worlds(steps):
            found = simulate(world, max(1, int(stages * share)), seed=steps)
            rows.append(row(steps, name, found))
            print("  ".join(rows[-1]), flush=True)
    few = int(FEWER * share)
    tables = (shared(few), equal_steps(few // 8))
    for table in (looks(int(LOOKED_AT * share)), skewed(int(SKEWED * share)), *tables):
        print(f"\n{as_table(list(table))}", flush=True)
    print(f"\n(before): without a correction for the choice among steps\n\n{as_table(rows)}")


if __name__ == "__main__":
    main()
