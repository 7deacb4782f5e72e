"""The JSON files of tiers: a header that all share, and those of Tier2 and Tier3.

Those of Tier4 are in `probe_files`, those of Tier5 in `verified_files`.

An external program's files may hold less; `_lacking` names what only the engine's must have.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, create_model, model_validator

from evaluation.results.files import FileModel
from evaluation.settings.metric import Metric
from evaluation.settings.sources import Normalization
from evaluation.settings.tiers import TIERS, TaskKind

EXTERNAL = "external"
"""Beginning of the protocol in files that an external command wrote."""

Rate = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0)]


class Counts(FileModel):
    """Numbers of requested, used and left-out items."""

    asked: Count
    used: Count
    left_out: dict[str, int] = {}


class TokenizerName(FileModel):
    """Which tokenizer the data were prefilled with."""

    name: str | None = None
    fingerprint: str | None = None
    prepend_bos: bool | None = None

    @property
    def identity(self) -> str | None:
        """The value by which tokenizers are compared: the fingerprint, or else the name."""
        return self.fingerprint or self.name


class TierFile(FileModel):
    """The header of every tier file."""

    stage: str
    step: int | None
    role: Literal["step", "bridge"]
    checkpoint: str
    checkpoint_identity: str
    tokenizer: TokenizerName
    sequence_length: int = Field(gt=0)
    trained_sequence_length: int | None = None
    rotary_embedding: str | None = None
    consumed_tokens: Count | None = None
    protocol: str
    packages: dict[str, tuple[str, ...]] = {}
    device: str | None = None
    gpu: str | None = None
    layers: tuple[Literal["compiled", "plain"], ...] | None = None
    row_tokens: tuple[int, ...] = ()
    dtype: str | None = None
    seconds: float | None = Field(None, ge=0)
    tokens_per_second: float | None = Field(None, ge=0)
    items: Counts | int | None = None
    groups: dict[str, dict[str, float]] = {}

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

    group: str | None = None
    data: Any = None
    data_checksum: Any = None
    items: Counts | int | None = None
    seconds: float | None = Field(None, ge=0)
    tokens_processed: Count | None = None

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

    first: Count
    last: Count
    tokens: int = Field(gt=0)
    nats_per_token: float
    stderr: float | None = Field(ge=0)


def measured(
    base: type[FileModel], metrics: Iterable[Metric], required: str = ""
) -> type[FileModel]:
    """Return a model with a field for each metric, which only the required one's must have."""
    fields: dict[str, Any] = {}
    for metric in metrics:
        least, most = metric.bounds
        if metric.key == required:
            fields[metric.key] = float, Field(ge=least, le=most)
        else:
            fields[metric.key] = float | None, Field(None, ge=least, le=most)
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
    _SliceMetrics = measured(ItemEntry, _TIER2.metrics, required=_TIER2.shown)
    SliceMeans = measured(FileModel, _TIER2.metrics)
    _TaskMetrics = measured(ItemEntry, _TIER3.secondary)
    _TaskMeanMetrics = measured(FileModel, _TIER3.secondary)


def stored_values(entry: FileModel, metrics: Iterable[Metric]) -> dict[str, float]:
    """Return the values that a file has, by metric."""
    found = {metric.name: getattr(entry, metric.key, None) for metric in metrics}
    return {name: value for name, value in found.items() if value is not None}


class SliceEntry(_SliceMetrics):
    """A slice of Tier2."""

    tokens: Count | None = None
    blocks: Count | None = None
    bytes: Count | None = None
    attention: str | None = None
    by_position: tuple[PositionEntry, ...] = ()

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

    attention: str | None = None
    overall: SliceMeans | None = None
    slices: dict[str, SliceEntry] = Field(min_length=1)

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

    kind: TaskKind = "ranked"
    accuracy: Rate | None = None
    primary: Normalization | None = None
    metrics: dict[str, Rate] = {}
    centered: float | None = None
    chance: Rate | None = None
    stderr: float | None = Field(None, ge=0)
    greedy: Rate | None = None
    ties: Count | None = None
    nan: Count | None = None
    truncated_contexts: Count | None = None
    task: dict[str, Any] | None = None

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

    accuracy: Rate | None = None
    centered: float | None = None
    greedy: Rate | None = None


class Tier3File(TierFile):
    """`tier3_cf.json`."""

    overall: TaskMeans | None = None
    tasks: dict[str, TaskEntry] = Field(min_length=1)

    def _lacking(self) -> str | None:
        for name, entry in self.tasks.items():
            if entry.primary is None and entry.kind == "ranked":
                return f"tasks.{name}.primary is missing"
            if entry.metrics and entry.metrics.get(entry.primary or "raw") != entry.accuracy:
                return f"tasks.{name}.accuracy is not that of `metrics` by its primary, {entry.primary}"
        return None
