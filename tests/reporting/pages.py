"""Results of two stages, the pages written of them, and what a page holds."""

import csv
import json
import re
from pathlib import Path
from typing import Any

from evaluation.files import write_jsonl
from evaluation.reporting.report import report_run, report_stage
from evaluation.settings.plan import StagePlan
from tests.bridge.folders import make_plans, write_side, write_stage_of
from tests.prefill.plans import sign_meta

STEPS, LATER_STEPS = (10, 20, 30), (20, 30, 200)


def write_results(
    root: Path, *, gain: float = 0.5, steps: tuple[int, ...] = STEPS, **how: Any
) -> dict[str, StagePlan]:
    """Both stages scored, the second one compared with its bridge; its steps gain evenly.

    `how` has options of `make_plans`; what is left of them are those of each `write_side`.
    """
    options = ("tiers", "suite", "sequence_length", "objective")
    given = {name: how.pop(name) for name in options if name in how}
    plans = make_plans(root, steps=steps, **given)
    first, second = plans["first"], plans["second"]
    for plan, numbers in ((first, (100,)), (second, steps)):
        for step in numbers:
            plan.checkpoint(step).mkdir(parents=True)
    how |= {"packages": {"torch": ("2.13.0",)}, "device": "cpu", "dtype": "float32"}
    same = {"checkpoint_identity": "shared", "checkpoint": "/ckpts/first/100", **how}
    write_side(first.step_folder(100), first, step=100, **same)
    sides = {
        step: {"skill": gain * (place + 1), "nats": 3 - gain * place / 10, **how}
        for place, step in enumerate(steps)
    }
    write_stage_of(second, sides, **same)
    return plans


def write_report(plan: StagePlan) -> Path:
    """Everything that shows a stage, as the command writes it; returns its page."""
    report_stage(plan, {plan.name: plan})
    return plan.results / "report.html"


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
    write_jsonl(plan.cache_folder("tier3", name) / "examples.jsonl", rows)
    sign_meta(plan.cache_folder("tier3", name), checksum={"examples.jsonl": checksum})


def write_pages(
    root: Path, *, steps: tuple[int, ...] = LATER_STEPS, **how: Any
) -> dict[str, StagePlan]:
    """Both stages and the front page, of results as `write_results` makes them."""
    plans = write_results(root, steps=steps, **how)
    write_task(plans["second"], "quiz", "quiz")
    for plan in plans.values():
        report_stage(plan, plans)
    report_run(plans)
    return plans


def rows_of(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def page_data(page: Path) -> dict[str, list[dict[str, Any]]]:
    """The tables that a page draws, as its script unpacks them."""
    found = re.search(r'id="embedded">(.*?)</script>', page.read_text(), re.DOTALL)
    assert found is not None
    tables = json.loads(found[1])["data"]
    return {name: _rows(columns) for name, columns in tables.items()}


def _rows(columns: dict[str, Any]) -> list[dict[str, Any]]:
    cells = {
        name: [column["texts"][at] for at in column["at"]] if isinstance(column, dict) else column
        for name, column in columns.items()
    }
    return [dict(zip(cells, row, strict=True)) for row in zip(*cells.values(), strict=True)]
