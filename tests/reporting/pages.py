"""Results of two stages, the pages written of them, and what a page holds."""

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

from evaluation.reporting.pages.stage_page import stage_page
from evaluation.reporting.tables.stage_results import read_stage
from evaluation.reporting.tables.summary import write_tables
from evaluation.reporting.tables.task_quality import write_quality
from evaluation.settings.plan import StagePlan
from tests.bridge.folders import make_plans, write_side, write_stage_of

STEPS = (10, 20, 30)
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
