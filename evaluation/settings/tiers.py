"""The table of tiers, which every other part of the project reads.

A tier is a kind of evaluation with a section in the suites and files in every checkpoint's results.
Its items are of one of two kinds; comparisons with the bridge support no others:

    nats     nats per unit of weight (a token, a byte), summed over blocks of text: less is better
    credit   credit in [0, 1] for questions, prompts or answers: more is better

CONTRIBUTING.md says how to add one.
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from evaluation.settings.measured import (
    OF_BLOCKS,
    OF_CANDIDATES,
    OF_COMPLETIONS,
    OF_PROBES,
    TRUNCATED,
)
from evaluation.settings.metric import Metric

TaskKind = Literal["ranked", "gold"]
"""Whether a task's candidates are all scored and ranked, or only the right answer is scored."""


@dataclass(frozen=True, kw_only=True)
class Cache:
    """Folder of a tier's prefilled items, and the name of the rule and option that make them."""

    name: str
    """`slice` is made by `prefill_slice` and `--slice NAME`."""
    folder: str
    per_stage: bool = False
    """One entry for all items of a stage, named after the stage; else one for each item."""

    @property
    def flag(self) -> str:
        return f"--{self.name.replace('_', '-')}"


@dataclass(frozen=True, kw_only=True)
class Tier:
    """A tier's description.

    `headline` is the metric that decides objectives, `shown` the one shown where there is room for
    only one. `rates` marks a tier whose overall values are several rates over all of its units, and whose
    items are its `categories`; elsewhere an overall value is the unweighted mean over the items.
    """

    name: str
    title: str
    kind: Literal["nats", "credit"]
    section: str
    """Key of its items in a suite and in its result file."""
    item: str
    unit: str
    """What an item consists of: a noun in the plural."""
    cache: Cache
    summary_file: str
    """Written last, so that it proves the tier complete."""
    items_file: str
    """Holds every block, candidate or answer in detail, or is `units_file`; programs may write none."""
    metrics: tuple[Metric, ...]
    headline: str
    shown: str
    protocol: str
    """A version, raised whenever numbers would change; results of other versions are made again."""
    stored: str | None = None
    """The version of its scores in the store, if other than the protocol: the first with these answers."""
    rates: bool = False
    unranked: tuple[str, ...] = ()
    """Metrics of items for which only the right answer is scored; their headline first."""

    @property
    def units_file(self) -> str:
        """Holds what each metric adds up and divides by, for every unit of its items."""
        return f"{self.summary_file.removesuffix('.json')}_units.parquet"

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.items_file, self.units_file, self.summary_file)))

    @property
    def scoring(self) -> str:
        return self.stored or self.protocol

    @property
    def head(self) -> Metric:
        return next(metric for metric in self.metrics if metric.name == self.headline)

    @property
    def secondary(self) -> tuple[Metric, ...]:
        return tuple(metric for metric in self.metrics if metric.is_secondary)

    @property
    def others(self) -> tuple[str, ...]:
        """Names of the metrics besides the headline that an objective may name."""
        names = (*(metric.name for metric in self.secondary), *self.unranked)
        return tuple(dict.fromkeys(names))

    @property
    def summed(self) -> tuple[str, ...]:
        ratios = [metric for metric in self.metrics if metric.numerator]
        return tuple(dict.fromkeys(n for m in ratios for n in (m.numerator, m.denominator)))

    @property
    def headline_first(self) -> tuple[Metric, ...]:
        return tuple(sorted(self.metrics, key=lambda metric: metric.name != self.headline))

    def metrics_by(self, kind: TaskKind) -> tuple[str, ...]:
        """Return the names of the metrics of an item of this kind, its headline first."""
        secondary = (metric.name for metric in self.metrics if metric.is_secondary)
        return self.unranked if kind == "gold" else (self.headline, *secondary)

    def headline_by(self, name: str, primary: str) -> str:
        """Return the headline's name for the primary verifier or normalization, or with that of another."""
        return self.headline if name == primary else f"{self.headline}_{name}"

    def headline_of(self, values: Container[str]) -> str:
        """Return the headline of an item with these values, which show its kind."""
        is_gold = self.headline not in values and any(name in values for name in self.unranked)
        return self.unranked[0] if is_gold else self.headline

    def shown_of(self, values: Container[str]) -> str:
        """Return the metric of an item with these values that is shown where there is room for one."""
        headline = self.headline_of(values)
        return self.shown if headline == self.headline else headline

    def metric(self, name: str) -> Metric:
        """Return a metric by its name, or by that of its delta, as `delta_ppl`.

        One that a suite adds is of the headline's kind.
        """
        name, named = name.removeprefix("delta_"), {metric.name: metric for metric in self.metrics}
        if name in named:
            return named[name]
        head = named[self.headline]
        up, kind = head.higher_is_better, head.key
        return Metric(name, unit=head.unit, higher_is_better=up, kind=kind)


_TABLE = (
    Tier(
        name="tier2",
        title="Perplexity",
        kind="nats",
        section="slices",
        item="slice",
        unit="blocks",
        cache=Cache(name="slice", folder="ppl_slices"),
        summary_file="tier2_ppl.json",
        items_file="tier2_ppl_units.parquet",
        metrics=OF_BLOCKS,
        headline="nats_per_token",
        shown="ppl",
        protocol="tier2-4",
    ),
    Tier(
        name="tier3",
        title="Ranked choices",
        kind="credit",
        section="tasks",
        item="task",
        unit="questions",
        cache=Cache(name="task", folder="cf_tasks"),
        summary_file="tier3_cf.json",
        items_file="tier3_cf_candidates.parquet",
        metrics=(
            Metric("acc", called="accuracy", stored_as="accuracy"),
            *OF_CANDIDATES,
            Metric("greedy", called="greedy rate"),
        ),
        headline="acc",
        unranked=("gold_bits_per_byte", "greedy"),
        shown="acc",
        protocol="tier3-4",
    ),
    Tier(
        name="tier4",
        title="SFT probes",
        kind="credit",
        section="probes",
        item="category",
        unit="prompts",
        cache=Cache(name="probes", folder="sft_native", per_stage=True),
        summary_file="tier4_sft_native.json",
        items_file="tier4_sft_native_generations.jsonl",
        metrics=OF_PROBES,
        headline="all_checks_pass_rate",
        shown="all_checks_pass_rate",
        protocol="tier4-10",
        stored="tier4-5",
        rates=True,
    ),
    Tier(
        name="tier5",
        title="Verified answers",
        kind="credit",
        section="generation_tasks",
        cache=Cache(name="generation", folder="generation_tasks"),
        item="task",
        unit="prompts",
        summary_file="tier5_verified.json",
        items_file="tier5_verified_units.parquet",
        metrics=(Metric("pass_rate"), TRUNCATED, *OF_COMPLETIONS),
        headline="pass_rate",
        shown="pass_rate",
        protocol="tier5-8",
        stored="tier5-2",
    ),
)

TIERS: Mapping[str, Tier] = {tier.name: tier for tier in _TABLE}
"""All tiers by name, in the order in which they are shown."""


if TYPE_CHECKING:
    TierName = str
else:
    TierName = Literal[tuple(TIERS)]
