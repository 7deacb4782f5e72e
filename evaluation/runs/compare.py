"""Compare two runs, checkpoint by checkpoint, with the paired statistics of the bridge."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluation.bridge.comparable import check_comparable
from evaluation.bridge.delta import OVERALL, Delta
from evaluation.bridge.deltas import compare
from evaluation.errors import BridgeError
from evaluation.results.columns import write_csv
from evaluation.results.comparison_file import (
    COMPARISON,
    COMPARISON_COLUMNS,
    COMPARISON_TABLE,
    Comparison,
    RunComparison,
    StageComparison,
)
from evaluation.results.files import write_model
from evaluation.results.read import Results, read_folder
from evaluation.runs.find import Run, RunCheckpoint
from evaluation.runs.leads import Lead, leads
from evaluation.runs.matching import NEAR, Match, matches, paired_stages
from evaluation.settings import protocol
from evaluation.settings.runs import By
from evaluation.settings.tiers import TIERS


def compare_runs(ours: Run, theirs: Run, by: By = "steps") -> RunComparison:
    """Compare the stages that both runs have, at the checkpoints that match; differences are A - B.

    A stage without matching checkpoints becomes a note if another stage has some.
    """
    compared, notes = [], []
    for stages in paired_stages(ours, theirs):
        sides = ours.stages[stages[0]], theirs.stages[stages[1]]
        try:
            matched = matches(*sides, by, " and ".join(dict.fromkeys(stages)))
        except BridgeError as error:
            notes.append(str(error))
            continue
        names = {"stage_a": stages[0], "stage_b": stages[1]}
        compared.append(_stage({"run_a": ours.name, "run_b": theirs.name, **names}, matched, by))
    if not compared:
        raise BridgeError("; ".join(notes))
    return RunComparison(
        run_a=ours.name,
        run_b=theirs.name,
        path_a=str(ours.path),
        path_b=str(theirs.path),
        notes=tuple(notes),
        stages=tuple(compared),
    )


def _stage(names: Mapping[str, str], matched: Sequence[Match], by: By) -> StageComparison:
    """Return a stage's comparison; `names` has the names of both runs and stages."""
    deltas, notes = _deltas(matched)
    tested = {
        (delta.tier, delta.metric) for of_match in deltas for delta in of_match if delta.primary
    }
    leading = [[d for d in of_match if (d.tier, d.metric) in tested] for of_match in deltas]
    lead_rows = leads(matched, leading)
    in_order = sorted(lead_rows, key=lambda lead: lead.key[1] != OVERALL)
    return StageComparison(
        stage_a=names["stage_a"],
        stage_b=names["stage_b"],
        by=by,
        checkpoints=len(matched),
        notes=tuple(notes),
        leads=tuple(lead.row for lead in in_order),
        deltas=tuple(_rows(names, matched, deltas, lead_rows)),
    )


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


def _rows(
    names: Mapping[str, str],
    matched: Sequence[Match],
    deltas: Sequence[Sequence[Delta]],
    lead_rows: Sequence[Lead],
) -> Iterator[dict[str, Any]]:
    for number, (match, of_match) in enumerate(zip(matched, deltas, strict=True)):
        simultaneous = {lead.key: lead.estimates[number] for lead in lead_rows}
        a, b = match.ours, match.theirs
        about = {**names, "step_a": a.step, "step_b": b.step}
        about |= {"tokens_a": a.tokens, "tokens_b": b.tokens}
        for delta in of_match:
            wide = simultaneous.get((delta.tier, delta.item, delta.metric))
            bounds = (None, None) if wide is None else (wide.low, wide.high)
            columns = delta.columns
            sides = {"value_a": columns.pop("value"), "value_b": columns.pop("bridge_value")}
            yield {**about, **sides, **columns, "low_all": bounds[0], "high_all": bounds[1]}


def compare_checkpoints(path_a: Path, path_b: Path) -> RunComparison:
    """Compare two checkpoints, whatever their steps, as one stage without leads; differences are A - B."""
    ours, theirs = (read_folder(path) for path in (path_a, path_b))
    runs = {"run_a": ours.label, "run_b": theirs.label}
    stages = {"stage_a": ours.header.stage, "stage_b": theirs.header.stage}
    a, b = (RunCheckpoint(step=side.header.step, folder=side.folder) for side in (ours, theirs))
    stage = _stage({**runs, **stages}, [Match(a, b)], "steps")
    stage = stage.model_copy(update={"leads": ()})
    paths = {"path_a": str(path_a), "path_b": str(path_b)}
    return RunComparison(**runs, **paths, stages=(stage,))  # type: ignore[arg-type]


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


def write_comparisons(folder: Path, comparisons: Sequence[RunComparison]) -> list[Path]:
    """Write all comparisons in order to `comparison.csv` and `comparison.json`."""
    content = Comparison(protocol=protocol.BRIDGE, comparisons=tuple(comparisons))
    stages = [stage for comparison in comparisons for stage in comparison.stages]
    rows = [row for stage in stages for row in stage.deltas]
    write_csv(folder / COMPARISON_TABLE, COMPARISON_COLUMNS, rows)
    write_model(folder / COMPARISON, Comparison, content.model_dump(mode="json"))
    return [folder / COMPARISON_TABLE, folder / COMPARISON]
