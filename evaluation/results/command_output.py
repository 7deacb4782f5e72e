"""Typed models of what `status`, `doctor` and the commands that print tables write with `--json`."""

from typing import Literal

from pydantic import Field

from evaluation.results.delta_rows import Flag, TierOf
from evaluation.results.deltas_file import StageDeltas
from evaluation.results.files import FileModel
from evaluation.results.stage_files import Recommendation

FileState = Literal["done", "outdated", "running", "failed", "missing", "damaged"]
CheckState = Literal["ok", "warning", "fault"]


class SubjectStatus(FileModel):
    """A checkpoint of a stage."""

    files: dict[str, FileState] = Field(
        description="State of each tier, and of `deltas` if it is compared."
    )
    error: str | None = Field(description="Last error of its job, if that failed.")
    log: str | None = Field(description="Log of the job that runs or failed.")
    damaged: tuple[str, ...] = Field(description="A sentence for each damaged file.")
    deleted: bool = Field(False, description="Whether the checkpoint is deleted.")
    partly_deleted: bool = Field(
        False, description="Whether some of its files were deleted since it was scored."
    )


class StageStatus(FileModel):
    """A stage."""

    stage: str = Field(description="Name of the stage.")
    complete: bool = Field(description="Whether all of it is done.")
    check: str | None = Field(description="Error of the check before the jobs.")
    checkpoints: str | None = Field(description="A sentence where there are no checkpoints.")
    verdict: str | None = Field(description="Verdict of the stage so far.")
    provisional: bool | None = Field(description="Whether steps are still to come.")
    verdict_outdated: bool | None = Field(
        description="Whether the verdict is of other settings, data or results than there are now."
    )
    prefill: dict[str, str] = Field(description="Log of each cache that is being prefilled.")
    subjects: dict[str, SubjectStatus] = Field(description="By step, or `bridge`.")
    files: dict[str, FileState] = Field(description="State of the stage's files.")
    damaged: tuple[str, ...] = Field(description="A sentence for each damaged file.")


class Status(FileModel):
    """`status --json`."""

    stages: dict[str, StageStatus] = Field(description="By name.")


class FindingRow(FileModel):
    """Something to correct."""

    state: CheckState = Field(description="`warning` or `fault`.")
    subject: str = Field(description="What it is about; empty where the sentence names it.")
    sentence: str = Field(description="What is wrong, and the remedy.")


class CheckRow(FileModel):
    """A check."""

    check: str = Field(description="Its name.")
    state: CheckState = Field(description="The worst state of its findings.")
    summary: str = Field(description="What was examined.")
    findings: tuple[FindingRow, ...] = Field(description="What was found.")


class DoctorReport(FileModel):
    """`doctor --json`."""

    state: CheckState = Field(description="The worst state of all checks.")
    checks: tuple[CheckRow, ...] = Field(description="All checks.")


class StageVerdicts(FileModel):
    """A stage in `bridge-table --json`."""

    deltas: StageDeltas | None = Field(description="Content of the stage's `bridge_deltas.json`.")
    recommendation: Recommendation | None = Field(
        description="Content of its `recommendation.json`."
    )
    note: str | None = Field(description="Why there are no deltas.")


class BridgeTable(FileModel):
    """`bridge-table --json`."""

    stages: dict[str, StageVerdicts] = Field(description="By name.")


class TableValue(FileModel):
    """An item's value at one checkpoint."""

    tier: TierOf
    item: str = Field(description="Slice, task or category, or `overall`.")
    metric: str = Field(description="Name of the metric.")
    value: float = Field(description="Its value.")
    low: float | None = Field(description="Lower end of its 95 % interval over items.")
    high: float | None = Field(description="Upper end of that interval.")
    flag: Flag | None = Field(description="Compared with the column before, if it is tested.")


class TableColumn(FileModel):
    """A checkpoint."""

    label: str = Field(description="Heading of the column.")
    folder: str = Field(description="Its folder of results.")
    values: tuple[TableValue, ...] = Field(description="A value for each item.")


class CheckpointTable(FileModel):
    """`table --json`."""

    columns: tuple[TableColumn, ...] = Field(description="In the order in which they were named.")
    notes: tuple[str, ...] = Field(description="A sentence for each pair that is not tested.")
