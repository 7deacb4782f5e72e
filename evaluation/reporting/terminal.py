"""Decisions and tables as text."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from tabulate import tabulate

from evaluation.errors import printable
from evaluation.reporting.decision import decision_lines, decision_row
from evaluation.reporting.judged_stage import read_stage
from evaluation.settings.plan import StagePlan

Plans = Mapping[str, StagePlan]


def as_table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows of cells as aligned columns, the first row underlined; control characters are escaped."""
    head, *rest = [[printable(cell) for cell in row] for row in rows]
    return str(tabulate(rest, headers=head, disable_numparse=True))


def advice_lines(plan: StagePlan, plans: Plans | None = None) -> list[str]:
    """Return a stage's decision as lines, what to do first."""
    return [*map(printable, decision_lines(decision_row(read_stage(plan, plans or {}))))]


def bridge_table(chosen: Plans, plans: Plans) -> str:
    """Return the decision of each chosen stage; `plans` are all stages."""
    parts = [(name, advice_lines(plan, plans)) for name, plan in chosen.items()]
    return "\n\n".join("\n  ".join([f"{name}: {lines[0]}", *lines[1:]]) for name, lines in parts)


def bridge_verdicts(chosen: Plans, plans: Plans) -> dict[str, Any]:
    """Return the same as `bridge-table --json` prints it."""
    rows = {name: decision_row(read_stage(plan, plans)) for name, plan in chosen.items()}
    return {"stages": {name: asdict(row) for name, row in rows.items()}}
