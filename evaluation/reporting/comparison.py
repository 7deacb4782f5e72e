"""Comparison of two result folders or of runs, as text and as `comparison.csv`, `comparison.json`."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluation.bridge.delta import OVERALL, is_mean
from evaluation.errors import EvaluationError
from evaluation.reporting.terminal import as_table
from evaluation.results.comparison_file import (
    RunComparison,
    StageComparison,
    Steps,
)
from evaluation.results.tier_files import tiers_in
from evaluation.runs.compare import compare_runs, write_comparisons
from evaluation.runs.find import find_run, this_run
from evaluation.runs.matching import match_label
from evaluation.settings.metric import Metric
from evaluation.settings.plan import StagePlan
from evaluation.settings.runs import THIS_RUN
from evaluation.settings.tiers import TIERS

Row = Mapping[str, Any]
Rows = Sequence[Row]


def folders_as_text(compared: RunComparison) -> str:
    """Return a table of the deltas of two checkpoints, and what is significantly worse."""
    (stage,) = compared.stages
    rows = stage.deltas
    sides = f"A = {compared.path_a}\nB = {compared.path_b}"
    return "\n".join([sides, "", _delta_table(rows), "", _summary(rows)[0], *stage.notes])


def _summary(rows: Rows) -> tuple[str, bool]:
    """Return in words what is significantly worse, items by Holm's correction, and whether anything is."""
    primary = [row for row in rows if row["primary"]]
    worse = [row for row in primary if row["flag"] == "worse"]
    means = [row for row in _shown(rows) if not row["primary"] and row["flag"] == "worse"]
    overall = dict.fromkeys(f"{row['tier']} {_metric(row).words}" for row in means)
    text = f"{len(worse)} of {len(primary)} items significantly worse (Holm-corrected)"
    text += f"; means that are worse, each by its own test: {', '.join(overall)}" if overall else ""
    return text, bool(worse or overall)


def _shown(rows: Rows) -> Rows:
    return [row for row in rows if row["primary"] or is_mean(row["tier"], row["item"])]


def _delta_table(rows: Rows) -> str:
    table = [["tier", "item", "metric", "A", "B", "A - B", "95 %", "p", "p (Holm)", "MDE", "flag"]]
    for row in _shown(rows):
        tier, *values = _values(row)
        mde = "–" if row["mde"] is None else _metric(row).number(row["mde"])
        tested = _p(row["p"]), _p(row["p_holm"]), mde, row["flag"] or ""
        table.append([tier, row["item"], *values, _interval(row, "low", "high"), *tested])
    return as_table(table)


def _values(row: Row) -> list[str]:
    metric = _metric(row)
    values = metric.number(row["value_a"]), metric.number(row["value_b"])
    return [row["tier"], metric.column, *values, metric.number(row["delta"], "+")]


def _interval(row: Row, low: str, high: str) -> str:
    return "–" if None in (row[low], row[high]) else _metric(row).interval(row[low], row[high])


def _metric(row: Row) -> Metric:
    return TIERS[row["tier"]].metric(row["metric"])


def _p(p: float | None) -> str:
    return "–" if p is None else f"{p:.2g}"


def runs_as_text(runs: RunComparison) -> str:
    """Return the comparison of every stage that both runs have as text, then what is not compared."""
    parts = [f"A = {runs.path_a}\nB = {runs.path_b}"]
    parts += [_stage(stage) for stage in runs.stages]
    parts += ["\n".join(f"not compared: {note}" for note in runs.notes)] if runs.notes else []
    return "\n\n".join(parts)


def is_worse_at_last(runs: RunComparison) -> bool | None:
    """Return whether A is significantly worse at the last matched checkpoints of any stage.

    Returns:
        None where nothing of some stage could be tested.
    """
    last = [list(stage.by_match.values())[-1] for stage in runs.stages]
    if not all(any(row["p"] is not None for row in _shown(rows)) for rows in last):
        return None
    return any(_summary(rows)[1] for rows in last)


def _stage(stage: StageComparison) -> str:
    matched = stage.by_match
    steps = list(matched)
    overall = [lead for lead in stage.leads if lead["item"] == OVERALL]
    text = [f"{stage.title}: {stage.matched}"]
    if len(steps) > 1:
        head = ["step", "tier", "metric", "A", "B", "A - B", "95 %", "95 %, all steps", "p"]
        text.append(as_table([head, *_by_step(matched, overall)]))
    text.append(f"At {match_label(*steps[-1])}:\n{_delta_table(matched[steps[-1]])}")
    text.append("\n".join(lead["sentence"] for lead in overall))
    summary = _summary(matched[steps[-1]])[0]
    text.append("\n".join([summary, *stage.notes]))
    return "\n\n".join(text)


def _by_step(matched: Mapping[Steps, Rows], overall: Rows) -> Iterator[list[str]]:
    shown = [(lead["tier"], lead["item"], lead["metric"]) for lead in overall]
    for (mine, other), rows in matched.items():
        step = str(mine) if mine == other else f"{mine} / {other}"
        known = {(row["tier"], row["item"], row["metric"]): row for row in rows}
        for row in (known[key] for key in shown):
            intervals = _interval(row, "low", "high"), _interval(row, "low_all", "high_all")
            yield [step, *_values(row), *intervals, _p(row["p"])]


def write_configured(plans: Mapping[str, StagePlan]) -> list[RunComparison]:
    """Compare the configured runs and write the files of it; one that cannot be compared has an error."""
    config = next(iter(plans.values())).config
    compared = list[RunComparison]()
    for name, other in config.runs.items():
        try:
            if tiers_in(Path(other.path)):  # one checkpoint: a line in the curves
                continue
            theirs = find_run(name, Path(other.path))
            compared.append(compare_runs(this_run(plans), theirs, other.by))
        except (EvaluationError, OSError) as error:
            named = {"run_a": THIS_RUN, "run_b": name, "error": str(error)}
            paths = {"path_a": config.results, "path_b": other.path}
            compared.append(RunComparison.model_validate(named | paths))
    write_comparisons(Path(config.results), compared)
    return compared
