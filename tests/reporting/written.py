"""Both stages and the front page, written from results drawn at random."""

from pathlib import Path
from typing import Any

from evaluation.reporting.pages.front_page import write_front_page
from evaluation.settings.plan import StagePlan
from tests.bridge.folders import make_plans, write_side, write_stage_of
from tests.reporting.pages import write_report
from tests.reporting.test_flips import write_task

STEPS = (20, 30, 200)


def write_pages(
    root: Path, *, gain: float, objective: list[dict[str, Any]] | None = None
) -> dict[str, StagePlan]:
    """Both stages and the front page; steps gain evenly."""
    plans = make_plans(root, steps=STEPS, objective=objective)
    first, second = plans["first"], plans["second"]
    same = {"checkpoint_identity": "shared", "checkpoint": "/ckpts/first/100"}
    about = {"packages": {"torch": ("2.13.0",)}, "device": "cpu", "dtype": "float32"}
    write_side(first.step_folder(100), first, step=100, **same, **about)
    sides = {
        step: {"skill": gain * (place + 1), "nats": 3 - gain * place / 10, **about}
        for place, step in enumerate(STEPS)
    }
    write_stage_of(second, sides, **same, **about)
    for plan, steps in ((first, (100,)), (second, STEPS)):
        for step in steps:
            plan.checkpoint(step).mkdir(parents=True)
        write_task(plan, "quiz", "quiz") if plan is second else None
        write_report(plan, steps)
    write_front_page(plans, first.results.parent / "report.html")
    return plans
