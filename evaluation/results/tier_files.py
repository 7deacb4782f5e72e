"""The JSON files of tiers: a header that all share, and those of Tier2 and Tier3.

Those of Tier4 are in `probe_files`, those of Tier5 in `verified_files`.

An external program's files may hold less; `_lacking` names what only the engine's must have.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, create_model, model_validator

from evaluation.results.files import FileModel, optional
from evaluation.settings.metric import Metric
from evaluation.settings.sources import Normalization
from evaluation.settings.tiers import TIERS, TaskKind

EXTERNAL = "external"
"""Beginning of the protocol in files that an external command wrote."""

Rate = Annotated[float, Field(ge=0, le=1)]


class Counts(FileModel):
    """Numbers of requested, used and left-out items."""

    asked: int = Field(ge=0, description="Items requested.")
    used: int = Field(ge=0, description="Items that were scored.")
    left_out: dict[str, int] = optional("Items left out, by reason.", {})


class TokenizerName(FileModel):
    """Which tokenizer the data were prefilled with."""

    name: str | None = optional("Hub id or folder.")
    fingerprint: str | None = optional("Fingerprint of all its files.")
    prepend_bos: bool | None = optional("Whether texts begin with BOS.")

    @property
    def identity(self) -> str | None:
        """The value by which tokenizers are compared: the fingerprint, or else the name."""
        return self.fingerprint or self.name


class TierFile(FileModel):
    """The header of every tier file."""

    stage: str = Field(description="Name of the stage.")
    step: int | None = Field(description="Step of the checkpoint; null where it has none.")
    role: Literal["step", "bridge"] = Field(description="Its role in the stage.")
    checkpoint: str = Field(description="The checkpoint's folder.")
    checkpoint_identity: str = Field(description="Changes with the checkpoint's files.")
    tokenizer: TokenizerName = Field(description="The tokenizer.")
    sequence_length: int = Field(gt=0, description="Tokens of a block, or of a request at most.")
    trained_sequence_length: int | None = optional("Tokens of a training sequence, if recorded.")
    rotary_embedding: str | None = optional("Base of the positions, and scaling if any.")
    consumed_tokens: int | None = optional("Training tokens, as counted by the trainer.", ge=0)
    protocol: str = Field(
        description="Version of the computation; results of different versions are not compared."
    )
    packages: dict[str, tuple[str, ...]] = optional("Versions of the scores' packages.", {})
    device: str | None = optional("`cpu` or `cuda`.")
    gpu: str | None = optional("Model of the GPU, or of all GPUs used; null on a CPU.")
    layers: tuple[Literal["compiled", "plain"], ...] | None = optional(
        "How layers ran; null on a CPU."
    )
    gpu_busy: Rate | None = optional("Share of `seconds` in which the GPU had work; null on a CPU.")
    row_tokens: tuple[int, ...] = optional(
        "Tokens per packed row of the forward pass; in a narrow dtype such as bfloat16 another number changes single items.",
        (),
    )
    dtype: str | None = optional("Floating-point type of the model.")
    seconds: float | None = optional("Computing time of the device, in seconds.", ge=0)
    tokens_per_second: float | None = optional("Tokens per second of the device.", ge=0)
    items: Counts | int | None = optional("How many items were used.")
    groups: dict[str, dict[str, float]] = optional("Weights in each group of the suite.", {})

    @property
    def is_external(self) -> bool:
        """Whether an external program wrote the file."""
        return self.protocol.startswith(EXTERNAL)

    @model_validator(mode="after")
    def _engine_is_complete(self) -> Self:
        lacking = None if self.is_external else self._lacking()
        if lacking:
            raise ValueError(lacking)
        return self

    @property
    def same(self) -> dict[str, Any]:
        """What must be the same on both sides of a comparison, of items that do not state it themselves."""
        return {}

    def _lacking(self) -> str | None:
        """Return in words what this file lacks of what the engine always writes; None if nothing."""
        return None


class ItemEntry(FileModel):
    """The keys that every slice and task has."""

    group: str | None = optional("Group that objectives refer to.")
    data: Any = optional("Fingerprint of the item's definition.")
    data_checksum: Any = optional("Checksums of the scored data.")
    items: Counts | int | None = optional("How many items were used.")
    seconds: float | None = optional("Computing time of the device, in seconds.", ge=0)
    tokens_processed: int | None = optional("Tokens that the model processed.", ge=0)

    @property
    def values(self) -> dict[str, float]:
        """Its values by metric, the headline first."""
        raise NotImplementedError

    @property
    def same(self) -> dict[str, Any]:
        """What must be the same on both sides of a comparison."""
        return {"data": self.data_checksum}

    @property
    def bounds(self) -> dict[str, tuple[float, float]]:
        """Its 95 % intervals by metric, where the file states some."""
        return {}


class PositionEntry(FileModel):
    """A slice's loss in a bin of positions."""

    first: int = Field(ge=0, description="First position: tokens that the model sees before it.")
    last: int = Field(ge=0, description="Last position.")
    tokens: int = Field(gt=0, description="Scored tokens there.")
    nats_per_token: float = Field(description="Their mean loss.")
    stderr: float | None = Field(ge=0, description="Its standard error; null for a single block.")


def measured(
    base: type[FileModel], metrics: Iterable[Metric], text: str, required: str = ""
) -> type[FileModel]:
    """Return a model with a field for each metric, which only the required one's must have.

    Args:
        text: What a field means, with the metric's description in it.
    """
    fields: dict[str, Any] = {}
    for metric in metrics:
        least, most = metric.bounds
        about: dict[str, Any] = {
            "description": text.format(metric.description.rstrip(".")),
            "ge": least,
            "le": most,
        }
        is_required = metric.key == required
        kind = float if is_required else float | None
        fields[metric.key] = kind, Field(**about) if is_required else Field(None, **about)
    return create_model(f"Measured{base.__name__}", __base__=base, **fields)


if TYPE_CHECKING:

    class _SliceMetrics(ItemEntry):
        """An entry with the metrics of a slice."""

    class SliceMeans(FileModel):
        """Their unweighted means over slices."""

    class _TaskMetrics(ItemEntry):
        """An entry with the metrics of a task's candidates."""

    class _TaskMeanMetrics(FileModel):
        """Their means."""

else:
    _TIER2, _TIER3 = TIERS["tier2"], TIERS["tier3"]
    _SliceMetrics = measured(ItemEntry, _TIER2.metrics, "{}.", required=_TIER2.shown)
    SliceMeans = measured(FileModel, _TIER2.metrics, "{}, as a mean over slices.")
    _TaskMetrics = measured(ItemEntry, _TIER3.secondary, "{}, mean over questions.")
    _TaskMeanMetrics = measured(FileModel, _TIER3.secondary, "{}, mean over tasks.")


def stored_values(entry: FileModel, metrics: Iterable[Metric]) -> dict[str, float]:
    """Return the values that a file has, by metric."""
    found = {metric.name: getattr(entry, metric.key, None) for metric in metrics}
    return {name: value for name, value in found.items() if value is not None}


class SliceEntry(_SliceMetrics):
    """A slice of Tier2."""

    tokens: int | None = optional("Scored tokens.", ge=0)
    blocks: int | None = optional("Packed blocks.", ge=0)
    bytes: int | None = optional("UTF-8 bytes of the scored text.", ge=0)
    attention: str | None = optional("What a token attends to: its `block`, or its `document`.")
    by_position: tuple[PositionEntry, ...] = optional(
        "The loss by position; empty where there is only one bin, or none was stored.", ()
    )

    @property
    def values(self) -> dict[str, float]:
        """Its values by metric; an external program may state only the one that is shown."""
        tier = TIERS["tier2"]
        found = stored_values(self, tier.metrics)
        shown = tier.metric(tier.shown)
        return {tier.headline: shown.unlinked(found[tier.shown]), **found}

    @property
    def same(self) -> dict[str, Any]:
        """Data, and what tokens attend to."""
        return {**super().same, "attention": self.attention}


class Tier2File(TierFile):
    """`tier2_ppl.json`."""

    attention: str | None = optional("`block`, or `document`; null where slices differ.")
    overall: SliceMeans | None = optional("Means over slices.")
    slices: dict[str, SliceEntry] = Field(min_length=1, description="Each slice by name.")

    @property
    def same(self) -> dict[str, Any]:
        """What tokens of all slices attend to."""
        return {"attention": self.attention}

    def _lacking(self) -> str | None:
        key = TIERS["tier2"].headline
        for name, entry in self.slices.items():
            if getattr(entry, key) is None:
                return f"slices.{name}.{key} is missing"
        return None


class TaskEntry(_TaskMetrics):
    """A task of Tier3."""

    kind: TaskKind = optional("`ranked`, or `gold`: only the right answer was scored.", "ranked")
    accuracy: Rate | None = optional("By the primary metric; of ranked tasks.")
    primary: Normalization | None = optional("Normalization that ranks candidates.")
    metrics: dict[str, Rate] = optional("Accuracy by every normalization.", {})
    centered: float | None = optional("0 at chance, 1 if all are right.")
    chance: Rate | None = optional("Accuracy of random choice.")
    stderr: float | None = optional(
        "Standard error of `accuracy`, or of `gold_bits_per_byte` where nothing is ranked, with clusters and strata, and never below that of independent items; null where all are alike.",
        ge=0,
    )
    greedy: Rate | None = optional(
        "Share of right answers that greedy decoding gives token by token; of tasks of kind `gold`."
    )
    ties: int | None = optional("Items whose best candidates are equal.", ge=0)
    nan: int | None = optional("Always 0: NaN is an error.", ge=0)
    truncated_contexts: int | None = optional("Contexts cut at the left.", ge=0)
    task: dict[str, Any] | None = optional("The task's definition.")

    @property
    def values(self) -> dict[str, float]:
        """Its values by metric, the metric that decides objectives first."""
        tier = TIERS["tier3"]
        names = (tier.headline,) if self.kind == "ranked" else tier.unranked
        return stored_values(self, map(tier.metric, names))

    @property
    def same(self) -> dict[str, Any]:
        """Data, and what ranks candidates."""
        return {**super().same, "primary metric": self.primary}

    @model_validator(mode="after")
    def _has_headline(self) -> Self:
        tier = TIERS["tier3"]
        key = tier.metric(tier.metrics_by(self.kind)[0]).key
        if getattr(self, key) is None:
            raise ValueError(f"`{key}` is missing")
        return self


class TaskMeans(_TaskMeanMetrics):
    """Unweighted means over all tasks that have the metric."""

    accuracy: Rate | None = optional("Mean of the primary accuracies.")
    centered: float | None = optional("Mean of the centered accuracies.")
    greedy: Rate | None = optional("Mean over tasks.")


class Tier3File(TierFile):
    """`tier3_cf.json`."""

    overall: TaskMeans | None = optional("Means over tasks.")
    tasks: dict[str, TaskEntry] = Field(min_length=1, description="Each task by name.")

    def _lacking(self) -> str | None:
        for name, entry in self.tasks.items():
            if entry.primary is None and entry.kind == "ranked":
                return f"tasks.{name}.primary is missing"
            if entry.metrics and entry.metrics.get(entry.primary or "raw") != entry.accuracy:
                return f"tasks.{name}.accuracy is not that of `metrics` by its primary, {entry.primary}"
        return None
