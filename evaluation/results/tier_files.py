"""The JSON files of tiers: a header that all share, and those of Tier2 and Tier3.

Files on generated answers are in `answer_files`.

An external program's files may hold less: what only the engine's must have is said by `_complete`.
"""

import math
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from evaluation.results.files import FileModel
from evaluation.settings.sources import Normalization
from evaluation.settings.tiers import TaskKind

EXTERNAL = "external"
"""How the protocol begins where an external command wrote the files."""

LARGEST = 700.0
"""Nats whose exp is still a float."""

Rate = Annotated[float, Field(ge=0, le=1)]


class Counts(FileModel):
    """How much of what was asked for was used."""

    asked: int = Field(ge=0, description="Items requested.")
    used: int = Field(ge=0, description="Items that were scored.")
    left_out: dict[str, int] = Field({}, description="Items left out, by reason.")


class TokenizerName(FileModel):
    """Which tokenizer the data were prefilled with."""

    name: str | None = Field(None, description="Hub id or folder.")
    fingerprint: str | None = Field(None, description="Fingerprint of all its files.")
    prepend_bos: bool | None = Field(None, description="Whether texts begin with BOS.")

    @property
    def identity(self) -> str | None:
        return self.fingerprint or self.name


class TierFile(FileModel):
    """What the file of every tier begins with."""

    stage: str = Field(description="Name of the stage.")
    step: int | None = Field(description="Step of the checkpoint; null where it has none.")
    merge: str | None = Field(None, description="Name of the merge; null for a checkpoint.")
    role: Literal["step", "merge", "bridge"] = Field(
        description="Whether it is a step, a merge or the bridge."
    )
    checkpoint: str = Field(description="Folder of the checkpoint, or the sum that a merge is.")
    checkpoint_identity: str = Field(description="Changes with the checkpoint's files.")
    tokenizer: TokenizerName = Field(description="The tokenizer.")
    sequence_length: int = Field(gt=0, description="Tokens of a block, or of a request at most.")
    trained_sequence_length: int | None = Field(
        None, description="Tokens of a sequence in training, if the checkpoint records them."
    )
    rotary_embedding: str | None = Field(
        None, description="How positions are encoded: base, and scaling if there is any."
    )
    consumed_tokens: int | None = Field(
        None, ge=0, description="Training tokens, as counted by the trainer."
    )
    protocol: str = Field(
        description="Version of the computation; results of different versions are not compared."
    )
    packages: dict[str, tuple[str, ...]] = Field(
        {}, description="Versions that the scores were computed with."
    )
    device: str | None = Field(None, description="`cpu` or `cuda`.")
    gpu: str | None = Field(
        None, description="Model of the GPU, or of all that scores come from; null on a CPU."
    )
    layers: tuple[Literal["compiled", "plain"], ...] | None = Field(
        None, description="How the model's layers ran on the GPU; null on a CPU."
    )
    gpus_per_checkpoint: tuple[int, ...] | None = Field(
        None, description="GPUs over which the model's layers were distributed, if more than one."
    )
    gpu_busy: Rate | None = Field(
        None, description="Share of `seconds` in which the GPU had work; null on a CPU."
    )
    row_tokens: tuple[int, ...] = Field(
        (),
        description="Tokens per packed row of the forward pass; in a narrow dtype such as bfloat16 another number changes single items.",
    )
    dtype: str | None = Field(None, description="Floating-point type of the model.")
    seconds: float | None = Field(
        None, ge=0, description="Computing time of the device, in seconds."
    )
    tokens_per_second: float | None = Field(
        None, ge=0, description="Tokens per second of the device."
    )
    items: Counts | int | None = Field(None, description="How many items were used.")
    groups: dict[str, dict[str, float]] = Field(
        {}, description="What each slice or task weighs in each group of the suite."
    )

    @property
    def is_external(self) -> bool:
        return self.protocol.startswith(EXTERNAL)

    @model_validator(mode="after")
    def _engine_is_complete(self) -> Self:
        lacking = None if self.is_external else self._lacking()
        if lacking:
            raise ValueError(lacking)
        return self

    def _lacking(self) -> str | None:
        """What the engine always writes and this file does not have, in words."""
        return None


class ItemEntry(FileModel):
    """What a file says of a slice or task."""

    group: str | None = Field(None, description="Group that objectives refer to.")
    data: Any = Field(None, description="Fingerprint of the item's definition.")
    data_checksum: Any = Field(None, description="Checksums of the scored data.")
    items: Counts | int | None = Field(None, description="How many items were used.")
    seconds: float | None = Field(
        None, ge=0, description="Computing time of the device, in seconds."
    )
    tokens_processed: int | None = Field(None, ge=0, description="Tokens that the model processed.")


class PositionEntry(FileModel):
    """What a slice has at some positions."""

    first: int = Field(ge=0, description="First position: tokens that the model sees before it.")
    last: int = Field(ge=0, description="Last position.")
    tokens: int = Field(gt=0, description="Scored tokens there.")
    nats_per_token: float = Field(description="Their mean loss.")
    stderr: float | None = Field(ge=0, description="Its standard error; null of a single block.")


class SliceEntry(ItemEntry):
    """A slice of Tier2."""

    ppl: float = Field(gt=0, description="Perplexity, exp of `nats_per_token`.")
    nats_per_token: float | None = Field(None, le=LARGEST, description="Loss per scored token.")
    bits_per_byte: float | None = Field(None, description="Loss per UTF-8 byte of scored text.")
    tokens: int | None = Field(None, ge=0, description="Scored tokens.")
    blocks: int | None = Field(None, ge=0, description="Packed blocks.")
    bytes: int | None = Field(None, ge=0, description="UTF-8 bytes of the scored text.")
    by_position: tuple[PositionEntry, ...] = Field(
        (), description="The loss by position; empty where there is one bin, or none is known."
    )

    @property
    def nats(self) -> float:
        return math.log(self.ppl) if self.nats_per_token is None else self.nats_per_token


class SliceMeans(FileModel):
    """Unweighted means over all slices."""

    ppl: float | None = Field(None, gt=0, description="exp of the mean nats per token.")
    nats_per_token: float | None = Field(None, description="Mean over slices.")
    bits_per_byte: float | None = Field(None, description="Mean over slices, if all have it.")


class Tier2File(TierFile):
    """`tier2_ppl.json`."""

    attention: str | None = Field(None, description="`block`, or `document`.")
    overall: SliceMeans | None = Field(None, description="Means over slices.")
    slices: dict[str, SliceEntry] = Field(min_length=1, description="Each slice by name.")

    def _lacking(self) -> str | None:
        for name, entry in self.slices.items():
            if entry.nats_per_token is None:
                return f"slices.{name}.nats_per_token is missing"
        return None


class TaskEntry(ItemEntry):
    """A task of Tier3."""

    kind: TaskKind = Field(
        "ranked", description="`ranked`, or `gold`: only the right answer was scored."
    )
    accuracy: Rate | None = Field(None, description="By the primary metric; of ranked tasks.")
    primary: Normalization | None = Field(None, description="What candidates are ranked by.")
    metrics: dict[str, Rate] = Field({}, description="Accuracy by every normalization.")
    centered: float | None = Field(None, description="0 at chance, 1 if all are right.")
    chance: Rate | None = Field(None, description="Accuracy of random choice.")
    stderr: float | None = Field(
        None,
        ge=0,
        description="Standard error of `accuracy`, or of `gold_bits_per_byte` where nothing is ranked; by clusters where there are some.",
    )
    gold_bits_per_byte: float | None = Field(
        None, ge=0, description="Bits per UTF-8 byte of the right answer, mean; lower is better."
    )
    correct_probability: Rate | None = Field(
        None, description="Share of the right answer in the candidates' probabilities, mean."
    )
    margin: float | None = Field(
        None,
        description="Nats per character of the right answer minus those of the best other, mean.",
    )
    greedy: Rate | None = Field(
        None,
        description="Share of right answers that greedy decoding gives token by token; of tasks of kind `gold`.",
    )
    ties: int | None = Field(None, ge=0, description="Items whose best candidates are equal.")
    nan: int | None = Field(None, ge=0, description="Always 0: NaN is an error.")
    truncated_contexts: int | None = Field(None, ge=0, description="Contexts cut at the left.")
    task: dict[str, Any] | None = Field(None, description="The task's definition.")

    @property
    def values(self) -> dict[str, float]:
        """Return its values by the metric that decides on it, the deciding one first."""
        found = {"acc": self.accuracy}
        if self.kind == "gold":
            found = {"gold_bits_per_byte": self.gold_bits_per_byte, "greedy": self.greedy}
        return {name: value for name, value in found.items() if value is not None}

    @model_validator(mode="after")
    def _has_headline(self) -> Self:
        key = "accuracy" if self.kind == "ranked" else "gold_bits_per_byte"
        if getattr(self, key) is None:
            raise ValueError(f"`{key}` is missing")
        return self


class TaskMeans(FileModel):
    """Unweighted means over all tasks that have the metric."""

    accuracy: Rate | None = Field(None, description="Mean of the primary accuracies.")
    centered: float | None = Field(None, description="Mean of the centered accuracies.")
    gold_bits_per_byte: float | None = Field(None, ge=0, description="Mean over tasks.")
    correct_probability: Rate | None = Field(None, description="Mean over tasks.")
    margin: float | None = Field(None, description="Mean over tasks.")
    greedy: Rate | None = Field(None, description="Mean over tasks.")


class Tier3File(TierFile):
    """`tier3_cf.json`."""

    overall: TaskMeans | None = Field(None, description="Means over tasks.")
    tasks: dict[str, TaskEntry] = Field(min_length=1, description="Each task by name.")

    def _lacking(self) -> str | None:
        for name, entry in self.tasks.items():
            if entry.primary is None and entry.kind == "ranked":
                return f"tasks.{name}.primary is missing"
        return None
