"""A stage's rows without those about positions, for pages."""

from typing import Any

from evaluation.reporting.table import stage_rows
from evaluation.reporting.tables.stage_results import StageResults


def summary_rows(stage: StageResults) -> list[dict[str, Any]]:
    """Return the rows of the stage's table that are not about positions, the bridge's last."""
    return [row for row in stage_rows(stage, {}) if row["position"] is None]
