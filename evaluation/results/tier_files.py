"""The JSON file of each tier, as it is read: a header that all share, and an entry for each item.

Values are keys of an entry, by the names that metrics have in files. An external program's files may hold
less; an item without its headline is refused in every file.
"""

from collections.abc import Iterable, Mapping
from math import inf
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from evaluation.errors import ResultsError
from evaluation.results.files import COLLECT_AGAIN, FileModel, as_model, read_object
from evaluation.settings.metric import Metric
from evaluation.settings.tiers import TIERS, TaskKind, Tier, TierName

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

    name: str | None
    fingerprint: str | None = None

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
    device: str | None = None
    gpu: str | None = None
    row_tokens: tuple[int, ...] = ()
    packages: dict[str, tuple[str, ...]] = {}
    dtype: str | None = None
    groups: dict[str, dict[str, float]] = {}

    @property
    def is_external(self) -> bool:
        """Whether an external program wrote the file."""
        return self.protocol.startswith(EXTERNAL)


class ItemEntry(FileModel):
    """An item's entry: `values` by metric, the headline first, and what must be the `same` on both sides."""

    group: str | None = None
    data_checksum: Any = None
    items: Counts | int | None = None

    @property
    def values(self) -> dict[str, float]:
        """Its values by metric, the headline first."""
        raise NotImplementedError

    @property
    def same(self) -> dict[str, Any]:
        """What must be the same on both sides of a comparison."""
        return {"data": self.data_checksum}

    @model_validator(mode="after")
    def _has_values(self) -> Self:
        if not self.values and not isinstance(self, CategoryEntry):
            raise ValueError("its headline is missing")
        return self

    def _stored(self, metrics: Iterable[Metric]) -> dict[str, float]:
        """Return the values that the entry has; raise ValueError for one that cannot be."""
        found: dict[str, float] = {}
        for metric in metrics:
            value = getattr(self, metric.key, None)
            low, high = metric.bounds
            if value is None:
                continue
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            least, most = (-inf if low is None else low), (inf if high is None else high)
            if not is_number or not least <= value <= most:
                raise ValueError(f"{metric.key} is {value!r}")
            found[metric.name] = float(value)
        return found


class SliceEntry(ItemEntry):
    """A slice of Tier2; an external program may state only the metric that is shown."""

    attention: str | None = None

    @property
    def values(self) -> dict[str, float]:
        """Its values by metric."""
        tier = TIERS["tier2"]
        found = self._stored(tier.metrics)
        if tier.shown not in found:
            return found
        return {tier.headline: tier.metric(tier.shown).unlinked(found[tier.shown]), **found}

    @property
    def same(self) -> dict[str, Any]:
        """Data, and what tokens attend to."""
        return {**super().same, "attention": self.attention}


class TaskEntry(ItemEntry):
    """A task of Tier3."""

    kind: TaskKind = "ranked"
    primary: str | None = None
    chance: Rate | None = None

    @property
    def values(self) -> dict[str, float]:
        """Its values by metric, the metric that decides objectives first."""
        tier = TIERS["tier3"]
        names = (tier.headline,) if self.kind == "ranked" else tier.unranked
        found = self._stored(map(tier.metric, names))
        return found if names[0] in found else {}

    @property
    def same(self) -> dict[str, Any]:
        """Data, and what ranks candidates."""
        return {**super().same, "primary metric": self.primary}


class VerifierRates(FileModel):
    """Rates of a task's completions by one verifier."""

    pass_rate: Rate


class OtherEngine(FileModel):
    """The engine that wrote the completions in place of the built-in one."""

    name: str
    version: str | None = None

    @property
    def title(self) -> str:
        """Its name, with its version if that is recorded."""
        return self.name if self.version is None else f"{self.name} {self.version}"


class GenerationEntry(ItemEntry):
    """A task of Tier5."""

    primary: str
    verifiers: dict[str, VerifierRates]
    views: dict[str, Any] = {}
    answer_after: str | None = None
    decoding: dict[str, Any] = {}
    engine: OtherEngine | None = None

    @property
    def values(self) -> dict[str, float]:
        """Its values by metric, the primary verifier's rate first; none without that."""
        if self.primary not in self.verifiers:
            return {}
        views = sorted(self.verifiers, key=lambda view: view != self.primary)
        rates = {self.metric_by(view): self.verifiers[view].pass_rate for view in views}
        others = [m for m in TIERS["tier5"].metrics if not m.is_secondary and m.name not in rates]
        return rates | self._stored(others)

    def metric_by(self, view: str) -> str:
        """Return the name of a verifier's rate."""
        return TIERS["tier5"].headline_by(view, self.primary)

    @property
    def same(self) -> dict[str, Any]:
        """Data, verifiers, and how completions were made."""
        return {
            **super().same,
            "primary verifier": self.primary,
            "verifiers": self.views,
            "answer_after": self.answer_after,
            "decoding": {key: v for key, v in self.decoding.items() if key != "engine"},
        }


class CategoryEntry(ItemEntry):
    """Shares of prompts of Tier4, all that end with `_rate`; null where no prompt counts for one."""

    prompts: Count | None = None

    @property
    def values(self) -> dict[str, float]:
        """Its rates, the headline first."""
        tier = TIERS["tier4"]
        others = [n for n in self.model_extra or {} if n.endswith("_rate") and n != tier.headline]
        return self._stored(map(tier.metric, (tier.headline, *others)))


class Tier2File(TierFile):
    """`tier2_ppl.json`."""

    slices: dict[str, SliceEntry] = Field(min_length=1)


class Tier3File(TierFile):
    """`tier3_cf.json`."""

    tasks: dict[str, TaskEntry] = Field(min_length=1)


class Tier4File(TierFile):
    """`tier4_sft_native.json`."""

    summary: CategoryEntry
    by_category: dict[str, CategoryEntry] | None = None
    data_checksum: Any = None

    @model_validator(mode="after")
    def _has_headline(self) -> Self:
        if TIERS["tier4"].headline not in self.summary.values:
            raise ValueError(f"summary.{TIERS['tier4'].headline} is missing")
        return self


class Tier5File(TierFile):
    """`tier5_verified.json`."""

    generation_tasks: dict[str, GenerationEntry] = Field(min_length=1)


_FILES: Mapping[str, type[TierFile]] = {
    "tier2": Tier2File,
    "tier3": Tier3File,
    "tier4": Tier4File,
    "tier5": Tier5File,
}


def entries_of(tier: Tier, file: TierFile) -> Mapping[str, ItemEntry]:
    """Return a file's entries by the name of their item."""
    entries: Mapping[str, ItemEntry] = getattr(file, tier.section)
    return entries


def tiers_in(folder: Path) -> tuple[TierName, ...]:
    """Return the tiers whose summary file exists."""
    return tuple(name for name, tier in TIERS.items() if (folder / tier.summary_file).exists())


def read_tier_file(folder: Path, name: TierName) -> TierFile:
    """Read a tier's summary file, and check that its units and items are there, too; raise ResultsError."""
    tier = TIERS[name]
    path = folder / tier.summary_file
    file = as_model(path, read_object(path, COLLECT_AGAIN), _FILES[name], COLLECT_AGAIN)
    for other in dict.fromkeys((tier.units_file, tier.items_file)):
        if not file.is_external and not (folder / other).is_file():
            raise ResultsError(f"{folder / other}: no such file; {COLLECT_AGAIN}")
    return file
