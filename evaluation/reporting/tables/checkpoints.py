"""Several checkpoints side by side, a column each, as a paper prints them: text, CSV or LaTeX.

Each cell is a headline value with its own 95 % interval. An arrow tells that it differs from
the column before by the paired test (Holm's correction over all items of the two): ▲ better, ▼ worse.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from evaluation.bridge.delta import OVERALL, headline_delta
from evaluation.bridge.deltas import compare
from evaluation.errors import BridgeError, ResultsError
from evaluation.reporting.tables.side_by_side import Column, Format, Key, shown_metric, written
from evaluation.reporting.tables.values import Value, values_of
from evaluation.results.read import Results, read_results, tiers_in

ARROWS = (
    "▲ better, ▼ worse than the column before by the paired test (Holm's correction over all items of "
    "the two); a value without an interval has too few items for one"
)


def table_of(folders: Mapping[str, Path], form: Format) -> tuple[str, list[str]]:
    """The table of result folders by label, and a sentence for each pair that cannot be paired.

    Raises:
        ResultsError: a folder has no results, or damaged ones.
    """
    sides = {label: _read(folder) for label, folder in folders.items()}
    flags: dict[str, dict[Key, str]] = {}
    notes = []
    for before, label in pairwise(sides):
        try:
            flags[label] = _flags(sides[label], sides[before])
        except BridgeError as error:
            notes.append(f"{label} is not tested against {before}: {error}")
    columns = [Column(name, _headlines(one), flags.get(name, {})) for name, one in sides.items()]
    return written(columns, form), notes


def _read(folder: Path) -> Results:
    if not (tiers := tiers_in(folder)):
        raise ResultsError(
            f"{folder}: no tier files; name a folder such as by_checkpoint/step_1000"
        )
    return read_results(folder, tiers)


def _headlines(results: Results) -> dict[Key, Value]:
    """The overall value of each tier is its first row."""
    found = [one for one in values_of(results) if one.metric == shown_metric(one.tier)]
    return {(v.tier, v.item): v for v in sorted(found, key=lambda v: v.item != OVERALL)}


def _flags(ours: Results, theirs: Results) -> dict[Key, str]:
    """Of the tiers that both have."""
    shared = {name: tier for name, tier in ours.tiers.items() if name in theirs.tiers}
    if not shared:
        return {}
    return {
        (delta.tier, delta.item): delta.flag
        for delta in compare(replace(ours, tiers=shared), theirs)
        if delta.flag is not None and delta.metric == headline_delta(delta.tier)
    }
