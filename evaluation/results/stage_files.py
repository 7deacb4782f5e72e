"""The files of a stage and of the front page: recommendation, task quality.

<stage>/recommendation.json   which checkpoint is recommended
<stage>/task_quality.*        how much each slice and task can detect
"""

from typing import Any, ClassVar

from evaluation.results.deltas_file import Change, ObjectiveVerdict, Rows, StepVerdict
from evaluation.results.files import StageFile
from evaluation.settings import protocol

RECOMMENDATION = "recommendation.json"
QUALITY = "task_quality.json"
QUALITY_TABLE = "task_quality.csv"
PAGE = "report.html"
OVERVIEW = "overview.rst"


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
    headline: Change | None = None
    """The metric that ranks steps, at this one; its interval is simultaneous for all steps."""
    similar: Rows
    runner_up: dict[str, Any] | None = None
    left_out: tuple[str, ...] = ()
    provisional: bool = False
    awaited: tuple[int, ...] = ()
    verdicts: tuple[StepVerdict, ...] = ()
    """Verdicts on all steps, corrected for the choice among them."""


class TaskQuality(StageFile):
    """`task_quality.json`."""

    VERSION: ClassVar[tuple[str, str] | None] = ("report", protocol.REPORT)

    stage: str
    protocol: str
    alpha: float
    power: float
    rows: Rows
