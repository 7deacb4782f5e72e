"""Two result folders, or several runs, compared: as text, and as `comparison.csv`, `.json`, `.html`."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluation.bridge.delta import OVERALL, Delta
from evaluation.bridge.deltas import compare
from evaluation.bridge.pairing import check_comparable
from evaluation.bridge.statistics import Estimate
from evaluation.dependencies.other_runs import references
from evaluation.errors import EvaluationError, ResultsError
from evaluation.exit_codes import machine_fault
from evaluation.reporting.pages.page import write_page
from evaluation.reporting.pages.runs_page import runs_page
from evaluation.reporting.terminal import align
from evaluation.results.comparison_file import COMPARISON, COMPARISON_PAGE, read_comparison
from evaluation.results.read import read_results, tiers_in
from evaluation.runs.compare import ComparedRuns, ComparedStage, compare_runs
from evaluation.runs.document import as_document, compared, not_compared, write_document
from evaluation.runs.find import Run, find_run, this_run
from evaluation.runs.leads import Lead, corrected_for, lead_sentence
from evaluation.runs.matching import Matching
from evaluation.settings.config import Config
from evaluation.settings.plan import StagePlan
from evaluation.settings.runs import THIS_RUN
from evaluation.settings.tiers import TIERS, TierName

MOST = 12
"""Matched checkpoints whose steps are listed."""


def compare_folders(ours: Path, theirs: Path) -> tuple[str, bool | None]:
    """Return a table of the deltas of `ours` against `theirs`, and whether anything is worse.

    None where nothing could be tested, as without per-item scores.

    Raises:
        ResultsError: a folder has no results or lacks a tier of the other's, or one is damaged.
        BridgeError: the two must not be compared.
    """
    tiers = _shared_tiers(ours, theirs)
    sides = read_results(ours, tiers), read_results(theirs, tiers)
    deltas = compare(*sides)
    text, is_worse = _summary(deltas)
    notes = "".join(f"\n{note}" for note in check_comparable(*sides))
    text = f"A = {ours}\nB = {theirs}\n\n{_delta_table(deltas)}\n\n{text}{notes}"
    return text, is_worse if _is_tested(_shown(deltas)) else None


def _shared_tiers(ours: Path, theirs: Path) -> tuple[TierName, ...]:
    """Return the tiers that both folders have: one of a single side would be left out silently."""
    for folder in (ours, theirs):
        if not folder.is_dir():
            kind = "is a file" if folder.exists() else "no such folder"
            raise ResultsError(f"{folder}: {kind}; name a folder such as by_checkpoint/step_1000")
    if ours.samefile(theirs):
        raise ResultsError(f"{ours} and {theirs} are one folder; name two different ones")
    found = {folder: tiers_in(folder) for folder in (ours, theirs)}
    for folder, other in ((ours, theirs), (theirs, ours)):
        if not found[folder]:
            raise ResultsError(
                f"{folder}: no tier files; name a folder such as by_checkpoint/step_1000"
            )
        lacking = [tier for tier in found[other] if tier not in found[folder]]
        if lacking:
            raise ResultsError(
                f"{folder / TIERS[lacking[0]].summary_file}: no such file, though {other} has one; "
                "score that tier on both sides, or on none"
            )
    return found[ours]


def _summary(deltas: Sequence[Delta]) -> tuple[str, bool]:
    """Count items by Holm's correction over all of them; each overall value has a test of its own."""
    primary = [delta for delta in deltas if delta.primary]
    worse = [delta for delta in primary if delta.flag == "worse"]
    overall = dict.fromkeys(
        delta.tier
        for delta in deltas
        if delta.is_mean and not delta.primary and delta.flag == "worse"
    )
    text = f"{len(worse)} of {len(primary)} items significantly worse (Holm-corrected)"
    text += f"; the overall value is worse by its own test: {', '.join(overall)}" if overall else ""
    return text, bool(worse or overall)


def _shown(deltas: Sequence[Delta]) -> list[Delta]:
    return [delta for delta in deltas if delta.primary or delta.is_mean]


def _is_tested(deltas: Sequence[Delta]) -> bool:
    return any(delta.estimate.p is not None for delta in deltas)


def _delta_table(deltas: Sequence[Delta]) -> str:
    head = ["tier", "item", "metric", "A", "B", "A - B", "95 %", "p", "p (Holm)", "MDE", ""]
    rows = [head]
    for delta in _shown(deltas):
        tier, *values = _values(delta)
        p_holm = _number(delta.p_holm if delta.primary else None, ".2g")
        known = delta.estimate.mde
        mde = "–" if known is None else delta.definition.number(known)
        tested = _interval(delta, delta.estimate), _number(delta.estimate.p, ".2g"), p_holm, mde
        rows.append([tier, delta.item, *values, *tested, delta.flag or ""])
    return align(rows)


def _values(delta: Delta) -> list[str]:
    metric = delta.definition
    values = metric.number(delta.value), metric.number(delta.bridge_value)
    return [delta.tier, metric.column, *values, metric.number(delta.estimate.value, "+")]


def _interval(delta: Delta, known: Estimate) -> str:
    if known.low is None or known.high is None:
        return "–"
    return delta.definition.interval(known.low, known.high)


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else f"{value:{form}}"


def runs_as_text(runs: ComparedRuns) -> str:
    """Return a text of every stage that both runs have, then what is not compared."""
    parts = [f"A = {runs.ours.path}\nB = {runs.theirs.path}"]
    parts += [_stage(stage) for stage in runs.stages]
    parts += ["\n".join(f"not compared: {note}" for note in runs.notes)] if runs.notes else []
    return "\n\n".join(parts)


def is_worse_at_last(runs: ComparedRuns) -> bool | None:
    """Return whether A is significantly worse at the last matched checkpoints of any stage.

    None where nothing of a stage could be tested.
    """
    last = [stage.deltas[-1] for stage in runs.stages]
    if not all(map(_is_tested, last)):
        return None
    return any(_summary(deltas)[1] for deltas in last)


def _stage(stage: ComparedStage) -> str:
    deltas, text = stage.deltas[-1], [_title(stage)]
    overall = [lead for lead in stage.leads if lead.key[1] == OVERALL]
    if len(stage.matched) > 1:
        head = ["step", "tier", "metric", "A", "B", "A - B", "95 %", "95 %, all steps", "p"]
        text.append(align([head, *_by_step(stage, overall)]))
    text.append(f"At {stage.matched[-1].label}:\n{_delta_table(deltas)}")
    text.append("\n".join(lead_sentence(lead, stage.matched) for lead in overall))
    text.append(
        "\n".join(
            [_summary(deltas)[0], corrected_for(stage.leads, len(stage.matched)), *stage.notes]
        )
    )
    return "\n\n".join(text)


def _title(stage: ComparedStage) -> str:
    names = " against ".join(dict.fromkeys(stage.stages))
    steps = [str(match.ours.step) for match in stage.matched]
    shown = steps if len(steps) <= MOST else [*steps[: MOST - 2], "…", steps[-1]]
    count = f"{len(steps)} matched checkpoint{'s' if len(steps) > 1 else ''}"
    return f"{names}: {count} by {stage.how.by} (A's step {', '.join(shown)})"


def _by_step(stage: ComparedStage, overall: Sequence[Lead]) -> Iterator[list[str]]:
    for number, match in enumerate(stage.matched):
        mine, other = match.ours.step, match.theirs.step
        step = str(mine) if mine == other else f"{mine} / {other}"
        for lead in overall:
            delta, simultaneous = lead.deltas[number], lead.estimates[number]
            intervals = _interval(delta, delta.estimate), _interval(delta, simultaneous)
            yield [step, *_values(delta), *intervals, _number(delta.estimate.p, ".2g")]


def write_runs(folder: Path, comparisons: Sequence[ComparedRuns]) -> list[Path]:
    """Write all three files of runs that were compared; the first is A of each."""
    runs = [comparisons[0].ours, *(one.theirs for one in comparisons)]
    return _write(folder, runs, [compared(one) for one in comparisons])


def write_configured(folder: Path, plans: Mapping[str, StagePlan]) -> tuple[list[Path], list[str]]:
    """Write all three files of this run and those that its configuration names.

    Returns the files, and a sentence for each run that could not be compared, which they name too.
    """
    config = next(iter(plans.values())).config
    runs: list[Run] = []
    entries = []
    once = references(config)
    for name, other in config.runs.items():
        path = Path(other.path)
        if name in once:
            continue
        try:
            ours, theirs = this_run(plans), find_run(name, path)
            runs += [theirs] if runs else [ours, theirs]
            entries.append(compared(compare_runs(ours, theirs, Matching(by=other.by))))
        except (EvaluationError, OSError) as error:
            why = machine_fault(error) if isinstance(error, OSError) else str(error)
            entries.append(not_compared((THIS_RUN, name), Path(config.results), path, why))
    errors = [f"runs.{one['run_b']}: {one['error']}" for one in entries if one["error"]]
    if not runs:  # curves are seen against levels all the same
        with contextlib.suppress(EvaluationError):
            runs = [this_run(plans)]
    return _write(folder, runs, entries, config), errors


def _write(
    folder: Path,
    runs: Sequence[Run],
    entries: Sequence[dict[str, Any]],
    config: Config | None = None,
) -> list[Path]:
    """Write `entries` of `runs.document`; `config` is that of the first run, if there is one."""
    files = write_document(folder, as_document(entries))
    page = folder / COMPARISON_PAGE
    write_page(page, runs_page(runs, read_comparison(folder / COMPARISON).comparisons, config))
    return [*files, page]
