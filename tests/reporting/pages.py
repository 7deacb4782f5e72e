"""Results of two stages, the pages written of them, and what a page holds."""

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

from evaluation.files import write_jsonl
from evaluation.reporting.pages.front_page import write_front_page
from evaluation.reporting.pages.stage_page import stage_page
from evaluation.reporting.tables.stage_results import read_stage
from evaluation.reporting.tables.summary import write_tables
from evaluation.reporting.tables.task_quality import write_quality
from evaluation.settings.plan import StagePlan
from tests.bridge.folders import make_plans, write_side, write_stage_of
from tests.prefill.plans import sign_meta

STEPS, LATER_STEPS = (10, 20, 30), (20, 30, 200)
TIERS = ("slices", "tasks", "probes")


def write_results(
    root: Path,
    *,
    tiers: tuple[str, ...] = TIERS,
    suite: dict[str, Any] | None = None,
    sequence_length: int = 64,
    **sizes: Any,
) -> None:
    """Both stages scored, the second one compared with its bridge; each step gains more."""
    plans = make_plans(root, tiers=tiers, suite=suite, sequence_length=sequence_length)
    first, second = plans["first"], plans["second"]
    for plan, steps in ((first, (100,)), (second, STEPS)):
        for step in steps:
            plan.checkpoint(step).mkdir(parents=True)
    write_side(first.step_folder(100), first, step=100, **sizes)
    write_stage_of(second, {step: {"skill": step / 20, **sizes} for step in STEPS}, **sizes)


def write_report(plan: StagePlan, steps: tuple[int, ...]) -> Path:
    """Tables and page of a stage, as the command writes them."""
    found = read_stage(plan, steps)
    write_tables(found)
    page = plan.results / "report.html"
    page.write_text(stage_page(found, write_quality(found)))
    return page


SHOTS = "".join(f"Question: is {i} odd?\nAnswer: perhaps, who knows it\n\n" for i in range(8))


def write_task(plan: StagePlan, name: str, checksum: str) -> None:
    """Questions with the same solved examples before each, and texts that a page must not run."""
    rows = [
        {
            "id": f"{name}/{i}",
            "contexts": [{"text": f"{SHOTS}</script><b>Why {i}?"}],
            "candidates": [{"context": 0, "text": f" answer {n}"} for n in range(4)],
        }
        for i in range(400)
    ]
    write_jsonl(plan.task_folder(name) / "examples.jsonl", rows)
    sign_meta(plan.task_folder(name), checksum={"examples.jsonl": checksum})


def write_pages(
    root: Path, *, gain: float, objective: list[dict[str, Any]] | None = None
) -> dict[str, StagePlan]:
    """Both stages and the front page; steps gain evenly."""
    plans = make_plans(root, steps=LATER_STEPS, objective=objective)
    first, second = plans["first"], plans["second"]
    same = {"checkpoint_identity": "shared", "checkpoint": "/ckpts/first/100"}
    about = {"packages": {"torch": ("2.13.0",)}, "device": "cpu", "dtype": "float32"}
    write_side(first.step_folder(100), first, step=100, **same, **about)
    sides = {
        step: {"skill": gain * (place + 1), "nats": 3 - gain * place / 10, **about}
        for place, step in enumerate(LATER_STEPS)
    }
    write_stage_of(second, sides, **same, **about)
    for plan, steps in ((first, (100,)), (second, LATER_STEPS)):
        for step in steps:
            plan.checkpoint(step).mkdir(parents=True)
        write_task(plan, "quiz", "quiz") if plan is second else None
        write_report(plan, steps)
    write_front_page(plans, first.results.parent / "report.html")
    return plans


def page_data(page: Path) -> dict[str, Any]:
    """What a page draws from."""
    found = re.search(r'id="data">(.*?)</script>', page.read_text(), re.DOTALL)
    packed = gzip.decompress(base64.b64decode(found[1]))
    content: dict[str, Any] = json.loads(packed, object_hook=_rows)
    return content


def _rows(value: dict[str, Any]) -> Any:
    """Rows of what a page holds as columns, as its script makes them."""
    columns = value.get("$columns")
    if columns is None:
        return value
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
