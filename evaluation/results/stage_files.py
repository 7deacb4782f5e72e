"""The files of a stage and of the front page: recommendation, task quality.

<stage>/recommendation.json   which checkpoint is recommended
<stage>/task_quality.*        how much each slice and task can detect

Figures are listed by the plan, as their names depend on its tiers.
"""

from collections.abc import Collection
from typing import ClassVar

from evaluation.results.columns import columns_of
from evaluation.results.delta_rows import Change
from evaluation.results.deltas_file import StepEntry, StepVerdict
from evaluation.results.files import FileModel, StageFile
from evaluation.results.objective_rows import ObjectiveVerdict
from evaluation.results.table import SUMMARY, SUMMARY_TABLE
from evaluation.settings import protocol
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TierName

RECOMMENDATION = "recommendation.json"
QUALITY = "task_quality.json"
QUALITY_TABLE = "task_quality.csv"
PAGE = "report.html"
OVERVIEW = "overview.rst"

BRIDGE_FILES = (RECOMMENDATION,)
"""Files of a stage that has a bridge."""

FRONT_FILES = (PAGE, OVERVIEW)
"""Files in the folder of all results."""


def stage_outputs(plan: StagePlan) -> tuple[str, ...]:
    """Return the files that a report writes into a stage's results, those about the bridge last."""
    figures = [str(path.relative_to(plan.results)) for path in plan.figures.values()]
    bridge = () if plan.stage.bridge is None else BRIDGE_FILES
    return (SUMMARY_TABLE, SUMMARY, QUALITY_TABLE, QUALITY, PAGE, *figures, *bridge)


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
    notes: tuple[str, ...] = ()
    verdicts: tuple[StepVerdict, ...] = ()
    """Verdicts on all steps, corrected for the choice among them."""


def chosen_among(steps: Collection[int], recommendation: Recommendation | None) -> int | None:
    """Return the recommended step if it is one of these, else the last one; None without steps."""
    recommended = recommendation.step if recommendation else None
    return recommended if recommended in steps else max(steps, default=None)


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
    rows: tuple[QualityRow, ...]


QUALITY_COLUMNS = columns_of(QualityRow)
