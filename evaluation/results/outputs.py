"""The files that a stage's tables and the front page consist of: what Snakemake, status and pages ask.

Figures are listed by the plan, as their names depend on its tiers.
"""

from evaluation.results.bridge_files import DELTAS, RECOMMENDATION, STAGE_TABLE, SUMMARY
from evaluation.results.quality_file import QUALITY, QUALITY_TABLE
from evaluation.settings.plan import StagePlan

PAGE = "report.html"
SUMMARY_TABLE = "summary.csv"
SUMMARY_TEXT = "summary.md"
MATRIX = "score_matrix.csv"
MATRIX_TEX = "score_matrix.tex"
OVERVIEW = "overview.rst"
RETENTION = "retention.csv"
RETENTION_TEX = "retention.tex"

BRIDGE_FILES = (STAGE_TABLE, DELTAS, RECOMMENDATION)
"""Of a stage that has a bridge."""

FRONT_FILES = (PAGE, OVERVIEW, RETENTION, RETENTION_TEX)
"""In the folder of all results."""


def stage_outputs(plan: StagePlan) -> tuple[str, ...]:
    """What `tables` writes into a stage's results."""
    own = (
        *(SUMMARY_TABLE, SUMMARY, SUMMARY_TEXT, MATRIX, MATRIX_TEX),
        *(QUALITY_TABLE, QUALITY, PAGE),
    )
    return own if plan.stage.bridge is None else (*own, *BRIDGE_FILES)
