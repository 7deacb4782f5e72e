"""The JSON file of each tier, as it is read: a header that all share, and an entry for each item.

Values are keys of an entry, by the names that metrics have in files. An external program's files may hold
less; an item without its headline is refused in every file.
"""

from math import inf
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from evaluation.errors import ResultsError
from evaluation.results.files import COLLECT_AGAIN, FileModel, as_model, read_object
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


class VerifierRates(FileModel):
    """Rates of a task's completions by one verifier."""

    pass_rate: Rate


class OtherEngine(FileModel):
    """The engine that wrote the completions in place of the built-in one."""

    name: str
    version: str | None = None


_SAME = {
    "tier2": {"attention": "attention"},
    "tier3": {"primary metric": "primary"},
    "tier4": {},
    "tier5": {"primary verifier": "primary", "verifiers": "views", "answer_after": "answer_after"},
}
"""Keys of an entry, by tier and by their names in messages, that both sides of a comparison share."""


class ItemEntry(FileModel):
    """An item's entry, with what any tier writes into one; values are further keys."""

    group: str | None = None
    data_checksum: Any = None
    items: Counts | int | None = None
    prompts: Count | None = None
    attention: str | None = None
    kind: TaskKind = "ranked"
    chance: Rate | None = None
    primary: str | None = None
    verifiers: dict[str, VerifierRates] = {}
    views: dict[str, Any] = {}
    answer_after: str | None = None
    decoding: dict[str, Any] = {}
    engine: OtherEngine | None = None

    def values(self, tier: Tier) -> dict[str, float]:
        """Return its values by metric, the headline first, none without that.

        Raises ValueError for a value that cannot be.
        """
        stored, primary = self.model_extra or {}, self.primary or ""
        head = tier.metrics_by(self.kind)[0]
        names = [m.name for m in tier.metrics if m.numerator or not m.is_secondary]
        if self.kind == "gold":
            names = [*tier.unranked]
        elif tier.rates:
            names = [head, *(name for name in stored if name.endswith("_rate"))]
        verifiers = self.verifiers.items()
        values = {tier.headline_by(view, primary): rates.pass_rate for view, rates in verifiers}
        for metric in map(tier.metric, names):
            value, (low, high) = stored.get(metric.key), metric.bounds
            if value is None:
                continue
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            least, most = (-inf if low is None else low), (inf if high is None else high)
            if not is_number or not least <= value <= most:
                raise ValueError(f"{metric.key} is {value!r}")
            values[metric.name] = float(value)
        if tier.shown in values:
            shown = tier.metric(tier.shown)
            values.setdefault(tier.headline, shown.unlinked(values[tier.shown]))
        return {head: values[head], **values} if head in values else {}

    def same(self, tier: Tier) -> dict[str, Any]:
        """Return what must be the same on both sides of a comparison."""
        own = {what: getattr(self, key) for what, key in _SAME[tier.name].items()}
        decoding = {key: value for key, value in self.decoding.items() if key != "engine"}
        return {"data": self.data_checksum, **own, "decoding": decoding}


class TierFile(FileModel):
    """A tier's file: the header of all, and its items' entries, of probes by category."""

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
    offsets: dict[str, float] = {}
    """What is subtracted from a centered group's weighted sum of accuracies."""
    data_checksum: Any = None
    slices: dict[str, ItemEntry] = {}
    tasks: dict[str, ItemEntry] = {}
    generation_tasks: dict[str, ItemEntry] = {}
    summary: ItemEntry | None = None
    by_category: dict[str, ItemEntry] | None = None

    @property
    def is_external(self) -> bool:
        """Whether an external program wrote the file."""
        return self.protocol.startswith(EXTERNAL)


def tiers_in(folder: Path) -> tuple[TierName, ...]:
    """Return the tiers whose summary file exists."""
    return tuple(name for name, tier in TIERS.items() if (folder / tier.summary_file).exists())


def read_tier_file(folder: Path, name: TierName) -> TierFile:
    """Read a tier's summary file, and check that its units and items are there, too; raise ResultsError."""
    tier = TIERS[name]
    path = folder / tier.summary_file
    file = as_model(path, read_object(path, COLLECT_AGAIN), TierFile, COLLECT_AGAIN)
    for other in dict.fromkeys((tier.units_file, tier.items_file)):
        if not file.is_external and not (folder / other).is_file():
            raise ResultsError(f"{folder / other}: no such file; {COLLECT_AGAIN}")
    return file
