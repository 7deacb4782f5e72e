"""Typed models of the `bridge_deltas` files: a step's and a stage's deltas and verdicts.

<step>/bridge_deltas.json     deltas in long form, one verdict for each objective, the step's verdict
<stage>/bridge_deltas.csv     the deltas of all steps
<stage>/bridge_deltas.json    the same with all verdicts
"""

from typing import ClassVar

from pydantic import Field

from evaluation import protocol
from evaluation.results.delta_rows import DeltaRow, GroupDelta, PositionDelta
from evaluation.results.files import FileModel, StageFile, optional
from evaluation.results.objective_rows import ObjectiveRow, ObjectiveVerdict

DELTAS = "bridge_deltas.json"
STAGE_TABLE = "bridge_deltas.csv"


class StepEntry(FileModel):
    """An entry on a step."""

    step: int = Field(description="The step.")


class ComparedCheckpoint(FileModel):
    """One of the two checkpoints that are compared."""

    path: str = Field(description="Folder of the checkpoint.")
    identity: str = Field(description="Changes with the checkpoint's files.")
    step: int | None = Field(description="Its step.")
    protocols: dict[str, str] = Field(description="Version of each tier's computation.")
    tokenizer: str | None = Field(description="Fingerprint or name of its tokenizer.")
    sequence_length: int = Field(description="Tokens of a block.")
    gpu: str | None = optional("Model of the GPU, or of all GPUs; null on a CPU.")
    row_tokens: tuple[int, ...] = optional("Tokens per packed row, of all its scores.", ())


class StepVerdict(StepEntry):
    """The verdict on a step, with those on its objectives."""

    verdict: ObjectiveVerdict | None = Field(
        description="On the objective; null without one. In a stage's files, corrected for the choice among its checkpoints."
    )
    own_verdict: ObjectiveVerdict | None = optional(
        "Its verdict if it had been the only checkpoint."
    )
    objectives: tuple[ObjectiveRow, ...] = Field(
        description="For each entry of `objective`, in order."
    )


class StepDeltas(StepVerdict, StageFile):
    """A step's `bridge_deltas.json`."""

    VERSION: ClassVar[tuple[str, str] | None] = ("bridge", protocol.BRIDGE)

    stage: str = Field(description="Name of the stage.")
    protocol: str = Field(description="Version of the bridge's computation.")
    confidence: float = Field(description="Confidence level of the intervals.")
    alpha: float = Field(description="Significance level of the tests.")
    power: float = Field(description="Power that the minimum detectable effect refers to.")
    checkpoint: ComparedCheckpoint = Field(description="The step's checkpoint.")
    bridge: ComparedCheckpoint = Field(description="The bridge.")
    notes: tuple[str, ...] = optional(
        "Differences between the two sides that do not prevent a comparison.", ()
    )
    deltas: tuple[DeltaRow, ...] = Field(description="All deltas.")
    groups: tuple[GroupDelta, ...] = optional("Deltas for each group of prompts (`strata`).", ())
    by_position: tuple[PositionDelta, ...] = optional(
        "Deltas of the loss by position, of slices with at least two bins.", ()
    )


class StageDeltas(StageFile):
    """A stage's `bridge_deltas.json`."""

    VERSION: ClassVar[tuple[str, str] | None] = ("bridge", protocol.BRIDGE)

    stage: str = Field(description="Name of the stage.")
    protocol: str = Field(description="Version of the bridge's computation.")
    left_out: tuple[str, ...] = optional("Steps without deltas, and why.", ())
    provisional: bool = optional("Whether configured steps are still to come.", False)
    awaited: tuple[int, ...] = optional("Those steps.", ())
    notes: tuple[str, ...] = optional(
        "Differences from the bridge that do not prevent a comparison, and where.", ()
    )
    verdicts: tuple[StepVerdict, ...] = Field(description="Of all steps.")
    deltas: tuple[DeltaRow, ...] = Field(description="Of all steps.")
