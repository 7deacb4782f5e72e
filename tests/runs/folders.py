"""Runs on paper: the results of two stages, with a planted difference from some step on."""

from pathlib import Path
from typing import Any

from evaluation.settings.plan import StagePlan
from tests.bridge.folders import make_plans, write_side

STEPS = (10, 20, 30, 40)
SMALL: dict[str, Any] = {"items": 200, "blocks": 40, "prompts": 24}


def folder_of(root: Path, name: str, step: int) -> Path:
    """Results of a step of the run of this name."""
    return root / name / "results/second/by_checkpoint" / f"step_{step}"


def write_run(
    folder: Path,
    *,
    number: int = 0,
    steps: tuple[int, ...] = STEPS,
    gain: dict[int, float] | None = None,
    tokens_per_step: int | None = 1000,
    stage: str = "second",
    tiers: tuple[str, ...] = ("slices", "tasks", "probes"),
    **sizes: Any,
) -> StagePlan:
    """A run whose later steps are better; `gain` by step is what it is better by, on top of that."""
    plan = make_plans(folder, steps=steps, tiers=tiers)[stage]
    for step in steps:
        more = (gain or {}).get(step, 0.0)
        write_side(
            plan.step_folder(step),
            plan,
            step=step,
            skill=step / 100 + more,
            nats=3 - step / 100 - more,
            seed=1000 * number + step,
            consumed_tokens=None if tokens_per_step is None else step * tokens_per_step,
            **{**SMALL, **sizes},
        )
    return plan
