"""The files of the bridge.

<step>/bridge_deltas.json     deltas in long form, one verdict for each aim, the step's verdict
<stage>/bridge_deltas.csv     the deltas of all steps
<stage>/bridge_deltas.json    the same with all verdicts
<stage>/recommendation.json   which checkpoint to take on
<stage>/summary.*             scores and deltas of all steps and of the bridge
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, TypeAdapter, ValidationError

from evaluation import protocol
from evaluation.errors import ResultsError
from evaluation.results.bridge_rows import (
    SUMMARY_COLUMNS,
    AimRow,
    Answer,
    DeltaRow,
    GroupDelta,
    Moves,
    SummaryRow,
)
from evaluation.results.columns import as_rows, read_table
from evaluation.results.files import (
    AnyFileModel,
    FileModel,
    parse_json,
    parse_model,
    read_model,
    read_text,
)
from evaluation.settings.tiers import TierName

DELTAS = "bridge_deltas.json"
STAGE_TABLE = "bridge_deltas.csv"
RECOMMENDATION = "recommendation.json"
SUMMARY = "summary.parquet"


class Origin(FileModel):
    """One of the two checkpoints that are compared."""

    path: str = Field(description="Folder of the checkpoint.")
    identity: str = Field(description="Changes with the checkpoint's files.")
    step: int | None = Field(description="Its step.")
    protocols: dict[str, str] = Field(description="Version of each tier's computation.")
    tokenizer: str | None = Field(description="Fingerprint or name of its tokenizer.")
    sequence_length: int = Field(description="Tokens of a block.")
    gpu: str | None = Field(None, description="Model of the GPU, or of all; null on a CPU.")
    row_tokens: tuple[int, ...] = Field((), description="Tokens per packed row, of all its scores.")


class StepVerdict(FileModel):
    """A step's verdict with those on its aims."""

    step: int = Field(description="The step.")
    verdict: Answer | None = Field(
        description="Verdict on the whole objective; null without an objective."
    )
    aims: tuple[AimRow, ...] = Field(
        description="A verdict for each entry of `objective`, in order."
    )


class StepDeltas(StepVerdict):
    """A step's `bridge_deltas.json`."""

    stage: str = Field(description="Name of the stage.")
    protocol: str = Field(description="Version of the bridge's computation.")
    confidence: float = Field(description="Confidence level of the intervals.")
    alpha: float = Field(description="Significance level of the tests.")
    power: float = Field(description="Power that the minimum detectable effect refers to.")
    checkpoint: Origin = Field(description="The step's checkpoint.")
    bridge: Origin = Field(description="The bridge.")
    notes: tuple[str, ...] = Field(
        (), description="Differences between the two sides that do not prevent a comparison."
    )
    deltas: tuple[DeltaRow, ...] = Field(description="All deltas.")
    groups: tuple[GroupDelta, ...] = Field(
        (), description="Deltas for each group of prompts (`strata`)."
    )
    moves: tuple[Moves, ...] = Field(
        (), description="Number of prompts by their pass rates before and after."
    )


class StageDeltas(FileModel):
    """A stage's `bridge_deltas.json`."""

    stage: str = Field(description="Name of the stage.")
    protocol: str = Field(description="Version of the bridge's computation.")
    left_out: tuple[str, ...] = Field((), description="Steps without deltas, and why.")
    provisional: bool = Field(False, description="Whether configured steps are still to come.")
    awaited: tuple[int, ...] = Field((), description="Those steps.")
    notes: tuple[str, ...] = Field(
        (), description="Differences from the bridge that do not prevent a comparison, and where."
    )
    verdicts: tuple[StepVerdict, ...] = Field(description="Of all steps.")
    deltas: tuple[DeltaRow, ...] = Field(description="Of all steps.")


def notes_by_steps(contents: Mapping[int, StepDeltas]) -> list[tuple[str, str]]:
    """Each note of some steps once, with the steps that it is about, `all` or a list of them."""
    steps: dict[str, list[str]] = {}
    for step, content in contents.items():
        for note in content.notes:
            steps.setdefault(note, []).append(str(step))
    return [
        (note, "all" if len(own) == len(contents) else ", ".join(own))
        for note, own in steps.items()
    ]


def warnings_in_words(contents: Mapping[int, StepDeltas]) -> list[str]:
    """The same in words, as stage pages and terminals show them."""
    return [f"{note} ({_of_steps(own)})" for note, own in notes_by_steps(contents)]


def _of_steps(own: str) -> str:
    if own == "all":
        return "all steps"
    return f"steps {own}" if "," in own else f"step {own}"


class Headline(FileModel):
    """What steps are ranked by."""

    tier: TierName = Field(description="Name of the tier.")
    group: str | None = Field(description="Group of its items.")
    metric: str = Field(description="Name of the metric.")
    value: float = Field(description="The recommended step's value.")
    bridge_value: float = Field(description="The bridge's value.")
    delta: float | None = Field(None, description="Their difference.")
    low: float | None = Field(
        None, description="Lower end of the simultaneous interval for all steps."
    )
    high: float | None = Field(None, description="Upper end of it.")


class Beside(FileModel):
    """A step that is not significantly different from the recommended one."""

    step: int = Field(description="The step.")
    delta: float = Field(description="Its headline minus that of the recommended step.")
    low: float | None = Field(description="Lower end of the interval.")
    high: float | None = Field(description="Upper end of it.")
    p: float | None = Field(description="p-value of no difference.")


class Other(FileModel):
    """A step that fell out."""

    step: int = Field(description="The step.")
    verdict: Answer | None = Field(description="Its verdict.")
    why: str = Field(description="Why it is not the recommended one.")


class AverageRow(FileModel):
    """How the mean over the last checkpoints stands to an aim."""

    tier: TierName = Field(description="Tier of the objective.")
    group: str | None = Field(description="Group of items of the objective; null for all.")
    metric: str = Field(description="Metric that decides it.")
    steps: tuple[int, ...] = Field(description="The checkpoints.")
    delta: float = Field(description="Their mean minus the bridge's value.")
    low: float | None = Field(description="Lower end of its 95 % interval.")
    high: float | None = Field(description="Upper end of it.")
    se_items: float | None = Field(description="Standard error from the choice of items.")
    se_checkpoints: float | None = Field(
        description="Standard error from the choice of checkpoints."
    )
    verdict: Answer = Field(description="Verdict on the mean, by this interval.")
    sentence: str = Field(description="The same in words, with the last checkpoint.")


class Recommendation(FileModel):
    """`recommendation.json`."""

    stage: str = Field(description="Name of the stage.")
    step: int | None = Field(description="The step to use next; null if there is none.")
    checkpoint: str | None = Field(None, description="Its folder.")
    meets: bool | None = Field(description="Whether it meets the objective.")
    verdict: Answer | None = Field(None, description="Its verdict.")
    kind: str | None = Field(None, description="`recommended`, or a weaker term.")
    why: str = Field(description="The reason in words.")
    corrected_for: str | None = Field(
        None, description="The multiple comparisons that the verdict is corrected for."
    )
    companions: tuple[str, ...] = Field(
        (),
        description="Secondary metrics of undecided objectives, with simultaneous intervals for all steps.",
    )
    averages: tuple[AverageRow, ...] = Field(
        (),
        description="Objectives decided on the mean of the last checkpoints, if `average` is set.",
    )
    confidence: tuple[float, ...] = Field(
        (), description="Confidence level of the intervals of each objective."
    )
    headline: Headline | None = Field(None, description="What steps are ranked by.")
    beside: tuple[Beside, ...] = Field(
        description="Steps that are not significantly different from it."
    )
    others: tuple[Other, ...] = Field(description="Steps that were rejected.")
    left_out: tuple[str, ...] = Field((), description="Steps without deltas, and why.")
    provisional: bool = Field(False, description="Whether configured steps are still to come.")
    awaited: tuple[int, ...] = Field((), description="Those steps.")


_ROWS = TypeAdapter(list[SummaryRow])

_AGAIN = "run Snakemake again with the configuration of that run"


def read_step_deltas(path: Path) -> StepDeltas:
    """A step's `bridge_deltas.json`; raises ResultsError, also where it is of another version."""
    return _of_this_version(path, StepDeltas, _AGAIN)


def read_stage_deltas(path: Path) -> StageDeltas:
    """A stage's `bridge_deltas.json`; raises ResultsError, also where it is of another version."""
    return _of_this_version(path, StageDeltas, _AGAIN)


def _of_this_version(path: Path, model: type[AnyFileModel], again: str) -> AnyFileModel:
    text = read_text(path, again)
    found = parse_json(path, text, again).get("protocol")
    if found != protocol.BRIDGE:
        raise ResultsError(
            f"{path}: written by bridge protocol {found!r}, not {protocol.BRIDGE!r}; remove it and "
            f"{again}"
        )
    return parse_model(path, text, model, again)


def read_recommendation(path: Path) -> Recommendation:
    """A stage's recommendation; raises ResultsError."""
    return read_model(path, Recommendation, _AGAIN)


def read_summary(path: Path) -> list[dict[str, Any]]:
    """The rows of a stage's `summary.parquet`, by SummaryRow's columns; raises ResultsError."""
    rows = as_rows(read_table(path, SUMMARY_COLUMNS, _AGAIN))
    try:
        _ROWS.validate_python(rows)
    except ValidationError as error:
        number, column = (*error.errors()[0]["loc"], "")[:2]
        raise ResultsError(
            f"{path}: row {number}: {column}: {error.errors()[0]['msg']}; remove it and {_AGAIN}"
        ) from None
    return rows
