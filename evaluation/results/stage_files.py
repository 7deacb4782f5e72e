"""The files of a stage and of the front page: recommendation, summary, task quality.

<stage>/recommendation.json   which checkpoint is recommended
<stage>/summary.*             scores and deltas of all steps and of the bridge
<stage>/task_quality.*        how much each slice and task can detect

Figures are listed by the plan, as their names depend on its tiers.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Any, ClassVar

from pydantic import TypeAdapter, ValidationError

from evaluation.results.columns import columns_of, read_table
from evaluation.results.delta_rows import Change
from evaluation.results.deltas_file import DELTAS, STAGE_TABLE, StepEntry
from evaluation.results.files import RUN_AGAIN, FileModel, StageFile, unusable
from evaluation.results.objective_rows import ObjectiveVerdict
from evaluation.settings import protocol
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TierName

RECOMMENDATION = "recommendation.json"
SUMMARY = "summary.parquet"
QUALITY = "task_quality.json"
QUALITY_TABLE = "task_quality.csv"
PAGE = "report.html"
SUMMARY_TABLE = "summary.csv"
SUMMARY_TEXT = "summary.md"
OVERVIEW = "overview.rst"

BRIDGE_FILES = (STAGE_TABLE, DELTAS, RECOMMENDATION)
"""Files of a stage that has a bridge."""

FRONT_FILES = (PAGE, OVERVIEW)
"""Files in the folder of all results."""


def stage_outputs(plan: StagePlan) -> tuple[str, ...]:
    """Return the files that `tables` writes into a stage's results, those about the bridge last."""
    scores = SUMMARY_TABLE, SUMMARY, SUMMARY_TEXT
    bridge = () if plan.stage.bridge is None else BRIDGE_FILES
    return (*scores, QUALITY_TABLE, QUALITY, PAGE, *bridge)


class Headline(Change):
    """The metric that ranks steps, at the recommended step; its interval is simultaneous for all steps."""

    group: str | None
    metric: str


class SimilarStep(StepEntry):
    """A step that is not significantly different from the recommended one."""

    delta: float
    low: float | None
    high: float | None
    p: float | None


class RejectedStep(StepEntry):
    """A step that was not recommended."""

    verdict: ObjectiveVerdict | None
    why: str


class RunnerUp(StepEntry):
    """The step that would be named without the recommended one."""

    verdict: ObjectiveVerdict
    why: str


class Recommendation(StageFile):
    """`recommendation.json`."""

    stage: str
    step: int | None
    checkpoint: str | None = None
    meets: bool | None
    verdict: ObjectiveVerdict | None = None
    own_verdict: ObjectiveVerdict | None = None
    kind: str | None = None
    why: str
    corrected_for: str | None = None
    confidence: tuple[float, ...] = ()
    headline: Headline | None = None
    similar: tuple[SimilarStep, ...]
    others: tuple[RejectedStep, ...]
    runner_up: RunnerUp | None = None
    left_out: tuple[str, ...] = ()
    provisional: bool = False
    awaited: tuple[int, ...] = ()


def chosen_among(steps: Collection[int], recommendation: Recommendation | None) -> int | None:
    """Return the recommended step if it is one of these, else the last one; None without steps."""
    recommended = recommendation.step if recommendation else None
    return recommended if recommended in steps else max(steps, default=None)


class SummaryRow(FileModel):
    """A row of `summary.*`: one metric of one item. Stable: new columns go to the end."""

    stage: str
    step: int | None
    role: str
    tier: TierName
    item: str
    group: str | None
    metric: str
    value: float
    low: float | None
    high: float | None
    chance: float | None
    n: int
    delta: float | None
    delta_low: float | None
    delta_high: float | None
    p_holm: float | None
    mde: float | None
    flag: str | None
    verdict: str | None
    deleted: bool
    note: str | None = None
    stderr: float | None = None
    name: str | None = None


class QualityRow(FileModel):
    """A metric of a slice or task over a stage. Stable: new columns go to the end."""

    stage: str
    tier: TierName
    item: str
    group: str | None
    metric: str
    checkpoints: int
    value: float
    monotonicity: float | None
    n: int
    compared_with: str | None
    difference: float
    needed: int | None
    too_small: bool | None
    in_split: int | None


class TaskQuality(StageFile):
    """`task_quality.json`."""

    VERSION: ClassVar[tuple[str, str] | None] = ("report", protocol.REPORT)

    stage: str
    protocol: str
    alpha: float
    power: float
    advice: tuple[str, ...]
    rows: tuple[QualityRow, ...]


SUMMARY_COLUMNS = columns_of(SummaryRow)
QUALITY_COLUMNS = columns_of(QualityRow)

_ROWS = TypeAdapter(list[SummaryRow])


def read_summary(path: Path) -> list[dict[str, Any]]:
    """Read the rows of a stage's `summary.parquet`, values by column; raise ResultsError."""
    rows: list[dict[str, Any]] = read_table(path, SUMMARY_COLUMNS, RUN_AGAIN).to_pylist()
    try:
        _ROWS.validate_python(rows)
    except ValidationError as error:
        number, column = (*error.errors()[0]["loc"], "")[:2]
        what = f"row {number}: {column}: {error.errors()[0]['msg']}"
        raise unusable(path, what, RUN_AGAIN) from None
    return rows
