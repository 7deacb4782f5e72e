"""Levels that curves are seen against: models that were scored once, such as public ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evaluation.dependencies.other_runs import references
from evaluation.errors import EvaluationError
from evaluation.reporting.pages.curves import Series
from evaluation.reporting.tables.values import values_of
from evaluation.results.read import read_results, tiers_in
from evaluation.runs.references import Shared, shared
from evaluation.settings.config import Config
from evaluation.settings.tiers import TierName

Key = tuple[TierName, str, str]
"""Tier, item and metric."""


@dataclass
class Levels:
    """By measure, the name, number and value of each reference that has a line there."""

    found: dict[Key, list[dict[str, Any]]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def beside(self, series: Sequence[Series]) -> list[Series]:
        """The same series with the levels of their measures."""
        keys = [(one["tier"], one["item"], one["metric"]) for one in series]
        return [
            {**one, "levels": self.found[key]} if key in self.found else one
            for one, key in zip(series, keys, strict=True)
        ]


def levels(config: Config, folders: Sequence[Path], number: int) -> Levels:
    """Levels of a configuration's references beside the checkpoints with results in `folders`.

    Their colours are numbered from `number` on.
    """
    known = Levels()
    for place, (name, path) in enumerate(references(config).items()):
        measures: dict[Key, float] = {}
        for folder in folders:
            try:
                found = shared(name, path, read_results(folder, tiers_in(folder)))
            except EvaluationError as error:
                known.notes.append(f"{name} has no line: {error}")
                continue
            known.notes += [note for note in found.notes if note not in known.notes]
            measures = {**_values(found), **measures}
        for key, value in measures.items():
            level = {"name": name, "number": number + place, "value": value}
            known.found.setdefault(key, []).append(level)
    return known


def _values(found: Shared) -> Mapping[Key, float]:
    tiers = found.results.tiers
    return {
        (value.tier, value.item, value.metric): value.value
        for value in values_of(found.results)
        if found.has_line(value.tier, value.item, tiers[value.tier].tier.metric(value.metric).unit)
    }
