"""The files of a stage and of the front page: recommendation, summary, task quality.

<stage>/recommendation.json   which checkpoint is recommended
<stage>/summary.*             scores and deltas of all steps and of the bridge
<stage>/task_quality.*        how much each slice and task can detect

Figures are listed by the plan, as their names depend on its tiers.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field, TypeAdapter, ValidationError

from evaluation import protocol
from evaluation.results.columns import columns_of, read_table
from evaluation.results.delta_rows import Change, Group, High, Items, Mde, TierOf
from evaluation.results.deltas_file import DELTAS, STAGE_TABLE, StepEntry
from evaluation.results.files import RUN_AGAIN, FileModel, StageFile, optional, unusable
from evaluation.results.objective_rows import NoiseRow, ObjectiveVerdict
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

    group: str | None = Field(description="Group of its items.")
    metric: str = Field(description="Name of the metric.")


class SimilarStep(StepEntry):
    """A step that is not significantly different from the recommended one."""

    delta: float = Field(description="Its headline minus that of the recommended step.")
    low: float | None = Field(description="Lower end of the interval.")
    high: float | None = Field(description="Upper end of that interval.")
    p: float | None = Field(description="p-value of no difference.")


class RejectedStep(StepEntry):
    """A step that was not recommended."""

    verdict: ObjectiveVerdict | None = Field(description="Its verdict.")
    why: str = Field(description="Why it is not recommended.")


class RunnerUp(StepEntry):
    """The step that would be named without the recommended one."""

    verdict: ObjectiveVerdict = Field(description="Its verdict.")
    why: str = Field(description="How it stands to the recommended one, in words.")


class AverageRow(FileModel):
    """The verdict on the mean over the last checkpoints by an objective."""

    tier: TierName = Field(description="Tier of the objective.")
    group: str | None = Field(description="Group of items of the objective; null for all.")
    metric: str = Field(description="Metric that decides it.")
    steps: tuple[int, ...] = Field(description="The checkpoints.")
    delta: float = Field(description="Their mean minus the bridge's value.")
    low: float | None = Field(description="Lower end of its 95 % interval.")
    high: float | None = Field(description="Upper end of that interval.")
    se_items: float | None = Field(description="Standard error from the choice of items.")
    se_checkpoints: float | None = Field(description="That from the choice of checkpoints.")
    bridge_checkpoints: int | None = optional(
        "Last checkpoints of the bridge's own stage that its noise was read from; null if it is assumed equal."
    )
    verdict: ObjectiveVerdict = Field(description="Verdict on the mean, by this interval.")
    sentence: str = Field(description="The same in words, with the last checkpoint.")


class Recommendation(StageFile):
    """`recommendation.json`."""

    stage: str = Field(description="Name of the stage.")
    step: int | None = Field(description="The step to use next; null if there is none.")
    checkpoint: str | None = optional("Its folder.")
    meets: bool | None = Field(description="Whether it meets the objective.")
    verdict: ObjectiveVerdict | None = optional("Its verdict.")
    own_verdict: ObjectiveVerdict | None = optional("Its verdict if it had been the only step.")
    kind: str | None = optional("`recommended`, `best candidate` or `least bad`.")
    why: str = Field(description="The reason in words.")
    corrected_for: str | None = optional("What the verdict is corrected for.")
    secondary: tuple[str, ...] = optional(
        "Secondary metrics of undecided objectives, with simultaneous intervals for all steps.", ()
    )
    averages: tuple[AverageRow, ...] = optional(
        "Objectives decided on the mean of the last checkpoints, if `average` is set.", ()
    )
    noise: tuple[NoiseRow, ...] = optional("Noise of each item between checkpoints.", ())
    recipe: tuple[str, ...] = optional(
        "What each objective's delta shows of the recipe, which includes the noise of checkpoints.",
        (),
    )
    confidence: tuple[float, ...] = optional("Level of each objective's intervals.", ())
    headline: Headline | None = optional("The metric that ranks steps.")
    similar: tuple[SimilarStep, ...] = Field(description="Not significantly different from it.")
    others: tuple[RejectedStep, ...] = Field(description="Steps that were rejected.")
    runner_up: RunnerUp | None = optional("The next by the same rule; null if there is no other.")
    left_out: tuple[str, ...] = optional("Steps without deltas, and why.", ())
    provisional: bool = optional("Whether configured steps are still to come.", False)
    awaited: tuple[int, ...] = optional("Those steps.", ())


def chosen_among(steps: Collection[int], recommendation: Recommendation | None) -> int | None:
    """Return the recommended step if it is one of these, else the last one; None without steps."""
    recommended = recommendation.step if recommendation else None
    return recommended if recommended in steps else max(steps, default=None)


class SummaryRow(FileModel):
    """A row of `summary.*`: one metric of one item. Stable: new columns go to the end."""

    stage: str = Field(description="Name of the stage.")
    step: int | None = Field(description="Step of the checkpoint.")
    role: str = Field(description="`step` or `bridge`.")
    tier: TierOf
    item: str = Field(description="Slice, task or category, or `overall`.")
    group: Group
    metric: str = Field(description="Name of the metric.")
    value: float = Field(description="Its value.")
    low: float | None = Field(description="Lower end of its 95 % interval over items.")
    high: High
    chance: float | None = Field(description="Value of random choice.")
    n: Items
    delta: float | None = Field(description="The value minus the bridge's.")
    delta_low: float | None = Field(description="Lower end of the delta's 95 % interval.")
    delta_high: High
    p_holm: float | None = Field(description="Corrected p-value of no difference.")
    mde: Mde
    flag: str | None = Field(description="`better`, `worse` or `unclear`, if the item is tested.")
    verdict: str | None = Field(description="Of the step: `met`, `not met` or `undecided`.")
    deleted: bool = Field(description="Whether the checkpoint was deleted since it was scored.")
    note: str | None = optional("Why the value has no interval.")
    stderr: float | None = optional("Standard error of the value over items.")
    name: str | None = optional("What the configuration's list of checkpoints calls the step.")


class QualityRow(FileModel):
    """A metric of a slice or task over a stage. Stable: new columns go to the end."""

    stage: str = Field(description="Name of the stage.")
    tier: TierName = Field(description="Name of the tier.")
    item: str = Field(description="Slice or task.")
    group: str | None = Field(description="Group that objectives refer to.")
    metric: str = Field(description="The headline, or a secondary metric.")
    checkpoints: int = Field(description="Checkpoints of the stage that have it.")
    value: float = Field(description="Its value at the last one.")
    above_chance: float | None = Field(description="Standard errors above chance (z).")
    monotonicity: float | None = Field(
        description="Spearman's correlation with the steps; 1 is steady gain. Of 3 checkpoints or more."
    )
    noise: float | None = Field(
        description="Standard deviation between neighbouring checkpoints, without the trend."
    )
    signal: float | None = Field(
        description="Gain along a straight line from the first to the last checkpoint."
    )
    signal_to_noise: float | None = Field(description="Size of `signal` over `noise`.")
    agreement: float | None = Field(
        description="Share of pairs of checkpoints that gold bits per byte order the same way."
    )
    n: int = Field(description="Blocks, questions or prompts.")
    compared_with: str | None = Field(description="Checkpoint that the last one was paired with.")
    difference: float = Field(description="Difference that should be detected.")
    needed: int | None = Field(
        description="Blocks, questions or prompts that show it with probability 0.8 (paired)."
    )
    too_small: bool | None = Field(description="Whether there are fewer than `needed`.")
    in_split: int | None = Field(
        description="How many its data have, before the suite's limit; null if unknown."
    )
    level_noise: float | None = optional(
        "Standard deviation of the level between the last checkpoints, without the flicker of answers."
    )
    flicker: float | None = optional("Standard deviation of the value from the flicker of answers.")
    share: float | None = optional(
        "Its share of the variance of the mean of the first objective that it is part of."
    )
    labels: str | None = optional(
        "Which of FineTasks' criteria it meets: `monotone` (0.5 or more), `above chance` (z of 3 or more), `low noise` (signal to noise of 1 or more)."
    )
    across_border: int | None = optional(
        "Questions of which a candidate begins inside a token of its context, so that its first characters "
        "are not scored; null if unknown."
    )


class TaskQuality(StageFile):
    """`task_quality.json`."""

    VERSION: ClassVar[tuple[str, str] | None] = ("report", protocol.REPORT)

    stage: str = Field(description="Name of the stage.")
    protocol: str = Field(description="Version of what reports show.")
    alpha: float = Field(description="Significance level of the tests that `needed` refers to.")
    power: float = Field(description="Power of these tests.")
    advice: tuple[str, ...] = Field(description="What would decide the undecided objectives.")
    rows: tuple[QualityRow, ...] = Field(description="Each slice's and task's metrics.")


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
