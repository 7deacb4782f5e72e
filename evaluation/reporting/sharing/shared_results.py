"""The values of one checkpoint as other formats list them: metric, interval, data set, settings."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.errors import ResultsError
from evaluation.results.kinds import Item
from evaluation.results.read import Results, TierResults, read_folder
from evaluation.results.stage_files import SUMMARY, read_summary
from evaluation.results.tier_files import TaskEntry, TierFile
from evaluation.results.verified_files import GenerationEntry, OtherEngine
from evaluation.settings.candidates import Candidate, candidate_label
from evaluation.settings.metric import Metric
from evaluation.settings.plan import StagePlan


@dataclass(frozen=True, kw_only=True)
class SharedValue:
    """A metric of an item, with its 95 % interval and standard error where there are some."""

    metric: Metric
    value: float
    low: float | None
    high: float | None
    n: int
    stderr: float | None = None


@dataclass(frozen=True, kw_only=True)
class SharedItem:
    """A slice, task or category with its values; `source` is the suite's item, if it still has it.

    `label` is its name, with the tier's where items of several tiers have it.
    """

    name: str
    label: str
    tier: TierResults
    values: tuple[SharedValue, ...]
    source: Any

    @property
    def result(self) -> Item:
        """The item's results."""
        return self.tier.items[self.name]

    @property
    def dataset(self) -> str | None:
        """Hub id of the data set; None for local files, providers' tasks and probes."""
        return getattr(self.source, "dataset", None)

    @property
    def num_fewshot(self) -> int | None:
        """Number of solved examples, if it is set."""
        return getattr(self.source, "num_fewshot", None)

    @property
    def decoding(self) -> Mapping[str, Any]:
        """How completions were drawn; empty where nothing is generated."""
        entry = self.result.entry
        return entry.decoding if isinstance(entry, GenerationEntry) else {}

    @property
    def engine(self) -> OtherEngine | None:
        """The engine that wrote its completions; None if it is the built-in one."""
        entry, name = self.result.entry, self.decoding.get("engine")
        if isinstance(entry, GenerationEntry) and entry.engine is not None:
            return entry.engine
        return OtherEngine(name=str(name)) if name else None


@dataclass(frozen=True, kw_only=True)
class SharedCheckpoint:
    """A checkpoint's items, in the order of its tiers."""

    plan: StagePlan
    candidate: Candidate
    results: Results
    items: tuple[SharedItem, ...]

    @property
    def header(self) -> TierFile:
        """The keys that all its tier files share."""
        return self.results.header

    @property
    def name(self) -> str:
        """A name for files and tables: run, stage and step."""
        run = Path(self.plan.config.results).resolve().name
        return f"{run}-{self.plan.name}-{self.candidate}"


def scored_candidates(plan: StagePlan) -> list[Candidate]:
    """Return the steps and merges that a stage's tables have, in their order; none without tables."""
    path = plan.results / SUMMARY
    rows = read_summary(path) if path.exists() else []
    roles = [(row["role"], row["step"], row["merge"]) for row in rows]
    candidates: list[Candidate] = [
        merge if role == "merge" else step
        for role, step, merge in dict.fromkeys(roles)
        if role in ("step", "merge")
    ]
    return candidates


def shared_checkpoint(plan: StagePlan, candidate: Candidate) -> SharedCheckpoint:
    """Read a checkpoint's items with the values of the stage's tables.

    Raises:
        ResultsError: The checkpoint, or the stage's tables, have no results, or they are damaged.
    """
    path = plan.results / SUMMARY
    rows = [row for row in read_summary(path) if _is_of(row, candidate)]
    if not rows:
        raise ResultsError(f"{path}: has no {candidate_label(candidate)}; run the stage again")
    results = read_folder(plan.step_folder(candidate))
    names = Counter(name for tier in results.tiers.values() for name in tier.items)
    twice = {name for name, count in names.items() if count > 1}
    items = tuple(
        item for tier in results.tiers.values() for item in _items(plan, tier, rows, twice)
    )
    return SharedCheckpoint(plan=plan, candidate=candidate, results=results, items=items)


def _is_of(row: Mapping[str, Any], candidate: Candidate) -> bool:
    key = "step" if isinstance(candidate, int) else "merge"
    return bool(row["role"] == key and row[key] == candidate)


def _items(
    plan: StagePlan, tier: TierResults, rows: Sequence[Mapping[str, Any]], twice: Collection[str]
) -> Iterator[SharedItem]:
    section = getattr(plan.suite, tier.tier.section)
    for name in tier.items:
        values = tuple(
            SharedValue(
                metric=tier.tier.metric(row["metric"]),
                value=row["value"],
                low=row["low"],
                high=row["high"],
                n=row["n"],
                stderr=row["stderr"],
            )
            for row in rows
            if (row["tier"], row["item"]) == (tier.tier.name, name)
        )
        label = f"{tier.tier.name}_{name}" if name in twice else name
        source = section.get(name)
        yield SharedItem(name=name, label=label, tier=tier, values=values, source=source)


def accuracy_names(item: SharedItem) -> Mapping[str, str]:
    """Return the normalization behind each accuracy of a ranked task, by the metric's name."""
    entry, head = item.result.entry, item.tier.tier.headline
    if not isinstance(entry, TaskEntry) or entry.kind != "ranked":
        return {}
    names = {head: entry.primary or "raw"}
    others = (key for key in entry.metrics if key != entry.primary)
    return names | {f"{head}_{key}": key for key in others}
