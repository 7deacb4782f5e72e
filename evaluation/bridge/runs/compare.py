"""Compare two runs, checkpoint by checkpoint, with the paired statistics of the bridge."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evaluation.bridge.comparable import check_comparable
from evaluation.bridge.delta import OVERALL, Delta
from evaluation.bridge.deltas import compare
from evaluation.bridge.runs.find import Run, RunCheckpoint
from evaluation.bridge.runs.leads import Bounds, Key, Lead, leads
from evaluation.bridge.runs.matching import NEAR, Match, matches, paired_stages
from evaluation.errors import BridgeError
from evaluation.results.columns import write_csv
from evaluation.results.read import Results, read_folder
from evaluation.results.table import TABLE_COLUMNS, TableRows, delta_columns
from evaluation.settings.runs import By
from evaluation.settings.tiers import TIERS

COMPARISON = "comparison.csv"

COMPARISON_COLUMNS = (*TABLE_COLUMNS, "against_value", "low_all", "high_all")
"""Those of a stage's table, then B's value, and the interval that holds for all matched checkpoints."""


@dataclass(frozen=True, kw_only=True)
class StageComparison:
    """One stage of two runs: rows of each match in the form of the long table, and leads, means first."""

    title: str
    matched: Sequence[Match]
    rows: Sequence[TableRows]
    leads: Sequence[Lead]
    notes: Sequence[str]


def compare_runs(
    ours: Run, theirs: Run, by: By = "steps"
) -> tuple[list[StageComparison], list[str]]:
    """Compare the stages that both runs have, at the checkpoints that match; differences are A - B.

    A stage without matching checkpoints becomes a note if another stage has some.
    """
    compared, notes = list[StageComparison](), list[str]()
    for stages in paired_stages(ours, theirs):
        title = " against ".join(dict.fromkeys(stages))
        try:
            matched = matches(ours.stages[stages[0]], theirs.stages[stages[1]], by, title)
        except BridgeError as error:
            notes.append(str(error))
            continue
        compared.append(_stage(title, matched, stages[0], f"{theirs.name}/{stages[1]}"))
    if not compared:
        raise BridgeError("; ".join(notes))
    return compared, notes


def compare_checkpoints(path_a: Path, path_b: Path) -> StageComparison:
    """Compare two checkpoints, whatever their steps; differences are A - B."""
    ours, theirs = (read_folder(path) for path in (path_a, path_b))
    a, b = (RunCheckpoint(step=side.header.step, folder=side.folder) for side in (ours, theirs))
    stages = ours.header.stage, theirs.header.stage
    title = " against ".join(dict.fromkeys(stages))
    return replace(_stage(title, [Match(a, b)], *stages), leads=())


def _stage(title: str, matched: Sequence[Match], stage: str, against: str) -> StageComparison:
    """Return a stage's comparison; `against` is B's name in the rows, without the step."""
    deltas, notes = _deltas(matched)
    tested = {
        (delta.tier, delta.metric) for of_match in deltas for delta in of_match if delta.primary
    }
    leading = [[d for d in of_match if (d.tier, d.metric) in tested] for of_match in deltas]
    found, rows = leads(matched, leading), list[TableRows]()
    for number, (match, of_match) in enumerate(zip(matched, deltas, strict=True)):
        wide = {lead[:3]: lead.bounds[number] for lead in found}
        step, tokens = match.ours.step, match.ours.tokens
        about = {"stage": stage, "checkpoint": f"step {step}", "step": step, "role": "step"}
        about |= {"tokens": tokens, "against": f"{against}/{match.theirs.step}"}
        rows.append([{**about, **_row(delta, wide)} for delta in of_match])
    in_order = sorted(found, key=lambda lead: lead.item != OVERALL)
    return StageComparison(title=title, matched=matched, rows=rows, leads=in_order, notes=notes)


def _row(delta: Delta, wide: Mapping[Key, Bounds]) -> dict[str, Any]:
    columns, key = delta.columns, (delta.tier, delta.item, delta.metric)
    same = ("tier", "item", "group", "value", "n", "note", "primary", "higher_is_better")
    low, high = wide.get(key, (None, None))
    return {
        **{name: columns[name] for name in same},
        **delta_columns(columns),
        "metric": delta.metric.removeprefix("delta_"),
        "unit": TIERS[delta.tier].metric(delta.metric).unit,
        "against_value": delta.bridge_value,
        "low_all": low,
        "high_all": high,
    }


def _deltas(matched: Sequence[Match]) -> tuple[list[list[Delta]], list[str]]:
    """Return the deltas of each match, and notes; only the results of one match at a time are in memory."""
    deltas: list[list[Delta]] = []
    notes: dict[str, None] = dict.fromkeys(_notes_on_tokens(matched))
    first = None
    for match in matched:
        try:
            sides = _read_sides(match.ours.folder, match.theirs.folder)
            notes |= dict.fromkeys(check_comparable(*sides))
            first = first or sides
            for side, earliest in zip(sides, first, strict=True):
                check_comparable(side, earliest)  # simultaneous intervals need the same items
            deltas.append(compare(*sides))
        except BridgeError as error:
            raise BridgeError(f"{match.label}: {error}") from None
    return deltas, [*notes]


def _read_sides(ours: Path, theirs: Path) -> tuple[Results, Results]:
    """Return the results of two folders, which must hold the same tiers."""
    sides = read_folder(ours), read_folder(theirs)
    if ours.samefile(theirs):
        raise BridgeError(f"{ours} and {theirs} are one folder; name two different folders")
    for left, right in (sides, sides[::-1]):
        lacking = [name for name in right.tiers if name not in left.tiers]
        if lacking:
            raise BridgeError(
                f"{left.folder / TIERS[lacking[0]].summary_file}: no such file, though {right.folder} "
                "has one; score that tier on both sides, or on none"
            )
    return sides


def _notes_on_tokens(matched: Sequence[Match]) -> list[str]:
    """Return a note if matched checkpoints have seen different numbers of tokens."""
    text = (
        "matched checkpoints have seen different numbers of tokens: at {} A has seen {:,}, B {:,}"
    )
    differ = (
        text.format(match.label, a, b)
        for match in matched
        if (a := match.ours.tokens) is not None and (b := match.theirs.tokens) is not None
        if abs(a - b) > NEAR * max(a, b)
    )
    return [*differ][:1]


def write_comparison(path: Path, stages: Sequence[StageComparison]) -> None:
    """Write the rows of all matches to a CSV file."""
    every = (row for stage in stages for of_match in stage.rows for row in of_match)
    write_csv(path, COMPARISON_COLUMNS, every)
