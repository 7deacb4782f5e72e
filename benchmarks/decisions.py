"""python -m benchmarks.decisions: how often the verdict of a stage is wrong, by simulation.

Stages of known truth are drawn and decided by the code that decides real ones; see
tests/bridge/simulation.py, whose tests do the same at a tenth of the size. Seeds are fixed.
"""

import argparse
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from evaluation.reporting.terminal import align
from tests.bridge.simulation import IMPROVE, KEEP, Counts, World, simulate

STAGES = {1: 20_000, 6: 7_000, 22: 2_000}
"""How many are drawn with so many steps."""

DETECTABLE = 0.0366
"""The gain that one step's own test finds with 80 %: its MDE with 4 tasks of 300 questions."""


def worlds(steps: int) -> Iterator[tuple[str, World]]:
    """What is simulated, by name."""
    none = World(gains=[0.0] * steps)
    yield "no change", none
    yield "no change, 16 questions a task", replace(none, questions=16, tasks=10)
    yield "every step gains its MDE", World(gains=[DETECTABLE] * steps)
    yield "the last step alone gains its MDE", World(gains=[0.0] * (steps - 1) + [DETECTABLE])
    loses = {"losses": [KEEP.margin] * steps}
    yield "loses just the margin", replace(none, objective=(KEEP,), **loses)
    yield (
        "gains, and loses just the margin",
        replace(none, gains=[0.1] * steps, objective=(IMPROVE, KEEP), **loses),
    )
    half = steps // 2
    if half:
        yield (
            "half gain nothing, half lose the margin",
            World(
                gains=[0.0] * half + [0.1] * (steps - half),
                losses=[0.0] * half + [KEEP.margin] * (steps - half),
                objective=(IMPROVE, KEEP),
            ),
        )


def row(steps: int, name: str, found: Counts) -> list[str]:
    error = math.sqrt(0.05 * 0.95 / found.stages)
    return [
        str(steps),
        name,
        f"{found.met:.1%}",
        f"{found.own_met:.1%}",
        f"{found.met_wrongly:.1%}",
        f"{found.covered:.1%}",
        f"{found.own_covered:.1%}",
        f"{found.excluded:.1%}",
        f"{found.own_excluded:.1%}",
        f"± {error:.1%}",
    ]


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
    print(f"\n(before): without any correction for the choice among steps\n\n{align(rows)}")


if __name__ == "__main__":
    main()
