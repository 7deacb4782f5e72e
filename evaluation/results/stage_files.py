"""The files of a stage and of the front page: recommendation, task quality.

<stage>/recommendation.json   which checkpoint is recommended
<stage>/task_quality.*        how much each slice and task can detect
"""

from typing import ClassVar

from evaluation.results.deltas_file import Change, ObjectiveVerdict, StepVerdict
from evaluation.results.files import FileModel, StageFile
from evaluation.settings import protocol
from evaluation.settings.tiers import TierName

RECOMMENDATION = "recommendation.json"
QUALITY = "task_quality.json"
QUALITY_TABLE = "task_quality.csv"
PAGE = "report.html"
OVERVIEW = "overview.rst"


class Headline(Change):
    """The metric that ranks steps, at the recommended step; its interval is simultaneous for all steps."""

    group: str | None
    metric: str


class SimilarStep(FileModel):
    """A step that is not significantly different from the recommended one."""

    step: int
    delta: float
    low: float | None
    high: float | None
    p: float | None


class RunnerUp(FileModel):
    """The step that would be recommended without the recommended one."""

    step: int
    verdict: ObjectiveVerdict | None
    why: str


class Recommendation(StageFile):
    """`recommendation.json`."""

    stage: str
    step: int | None
    checkpoint: str | None = None
    verdict: ObjectiveVerdict | None = None
    own_verdict: ObjectiveVerdict | None = None
    why: str | None = None
    """Why no step is recommended."""
    confidence: tuple[float, ...] = ()
    headline: Headline | None = None
    similar: tuple[SimilarStep, ...]
    runner_up: RunnerUp | None = None
    left_out: tuple[str, ...] = ()
    provisional: bool = False
    awaited: tuple[int, ...] = ()
    verdicts: tuple[StepVerdict, ...] = ()
    """Verdicts on all steps, corrected for the choice among them."""


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
