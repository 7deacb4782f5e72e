"""A step's `bridge_deltas.json`: deltas in long form, one verdict for each objective, the step's verdict."""

from typing import ClassVar

from evaluation.results.delta_rows import DeltaRow, GroupDelta, PositionDelta
from evaluation.results.files import FileModel, StageFile
from evaluation.results.objective_rows import ObjectiveRow, ObjectiveVerdict
from evaluation.settings import protocol

DELTAS = "bridge_deltas.json"


class StepEntry(FileModel):
    """An entry on a step."""

    step: int


class ComparedCheckpoint(FileModel):
    """One of the two checkpoints that are compared."""

    path: str
    identity: str
    step: int | None
    protocols: dict[str, str]
    tokenizer: str | None
    sequence_length: int
    gpu: str | None = None
    row_tokens: tuple[int, ...] = ()


class StepVerdict(StepEntry):
    """The verdict on a step, with those on its objectives."""

    verdict: ObjectiveVerdict | None
    own_verdict: ObjectiveVerdict | None = None
    objectives: tuple[ObjectiveRow, ...]


class StepDeltas(StepVerdict, StageFile):
    """A step's `bridge_deltas.json`."""

    VERSION: ClassVar[tuple[str, str] | None] = ("bridge", protocol.BRIDGE)

    stage: str
    protocol: str
    confidence: float
    alpha: float
    power: float
    checkpoint: ComparedCheckpoint
    bridge: ComparedCheckpoint
    notes: tuple[str, ...] = ()
    deltas: tuple[DeltaRow, ...]
    groups: tuple[GroupDelta, ...] = ()
    by_position: tuple[PositionDelta, ...] = ()
