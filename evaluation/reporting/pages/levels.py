"""Levels in curves: values of references, which are models that were scored once, such as public ones.

A reference is named under `runs:` like a run, by the folder of results of its one checkpoint. It is
compared with the run tier by tier, like two checkpoints; tiers that must not be compared get no level.
Published scores (`references:`) get levels, too, but are compared with nothing.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from evaluation.bridge.delta import OVERALL
from evaluation.bridge.deltas import compare
from evaluation.bridge.pairing import Pair
from evaluation.dependencies.other_runs import references
from evaluation.errors import EvaluationError
from evaluation.reporting.pages.curves import Key, Series
from evaluation.reporting.tables.values import values_of
from evaluation.results.read import Results, TierResults, read_folder
from evaluation.settings.config import Config
from evaluation.settings.runs import PublishedScores
from evaluation.settings.tiers import TierName


def with_levels(
    series: Sequence[Series], config: Config, folders: Sequence[Path], number: int
) -> tuple[list[Series], list[str]]:
    """Return series with a level for each reference that has their metric, and notes on those without.

    Args:
        folders: Folders of results that a reference is compared with; earlier ones take precedence.
        number: Number of the first reference's colour.
    """
    levels: dict[Key, list[dict[str, Any]]] = {}
    notes: list[str] = []
    for place, (name, path) in enumerate(references(config).items(), number):
        values: dict[Key, float] = {}
        for folder in folders:
            try:
                values = {**_shared_values(name, path, read_folder(folder), notes), **values}
            except EvaluationError as error:
                notes.append(f"{name} has no line: {error}")
        for key, value in values.items():
            levels.setdefault(key, []).append({"name": name, "number": place, "value": value})
    first = number + len(references(config))
    for place, (name, published) in enumerate(config.references.items(), first):
        notes.append(_of_published(name, published))
        for item, score in published.scores.items():
            level = {"name": f"{name} (published)", "number": place, "value": score}
            levels.setdefault((published.tier, item, published.measured), []).append(level)
    keys = [(curve["tier"], curve["item"], curve["metric"]) for curve in series]
    drawn = [
        {**curve, "levels": levels[key]} if key in levels else curve
        for curve, key in zip(series, keys, strict=True)
    ]
    return drawn, list(dict.fromkeys(notes))


def _of_published(name: str, published: PublishedScores) -> str:
    """Say where published scores are from, and what they are not good for."""
    return (
        f"{name} (published): {published.source}; not scored here. Its prompts, questions and scoring may "
        "differ, so nothing is paired with it, and no difference from it is tested."
    )


def _shared_values(name: str, folder: Path, ours: Results, notes: list[str]) -> dict[Key, float]:
    """Return a reference's values that are comparable with a run's; `notes` gets why a tier has none.

    Left out are means over different items, and units that depend on the tokenizer where it differs.
    """
    theirs = read_folder(folder)
    tiers: dict[TierName, TierResults] = {}
    across: set[TierName] = set()
    partial: set[TierName] = set()
    for tier in (tier for tier in ours.tiers if tier in theirs.tiers):
        pair = Pair(ours.tiers[tier], theirs.tiers[tier])
        if not pair.tier.rates:  # prompts of rates stay together
            pair = pair.over(name for name in pair.ours.items if name in pair.theirs.items)
            if not pair.ours.items:
                continue
        differ = pair.ours.file.tokenizer.identity != pair.theirs.file.tokenizer.identity
        try:
            compare(*pair.results, across_tokenizers=differ)
        except EvaluationError as error:
            notes.append(f"{name} has no line in {tier}: {error}")
            continue
        tiers[tier] = pair.theirs
        across |= {tier} if differ else set()
        partial |= {tier} if set(pair.ours.items) != set(ours.tiers[tier].items) else set()
    return {
        (row.tier, row.item, row.metric): row.value
        for row in values_of(replace(theirs, tiers=tiers))
        if row.item != OVERALL or row.tier not in partial
        if row.tier not in across or tiers[row.tier].tier.metric(row.metric).is_free_of_tokens
    }
