"""Comparison of two checkpoints or of runs, as text, as JSON and as `comparison.csv`."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluation.bridge.delta import OVERALL, is_mean
from evaluation.bridge.runs.compare import (
    COMPARISON,
    StageComparison,
    compare_runs,
    write_comparison,
)
from evaluation.bridge.runs.find import find_run, this_run
from evaluation.errors import EvaluationError, first_few
from evaluation.reporting.terminal import as_table
from evaluation.results.table import TableRows
from evaluation.results.tier_files import tiers_in
from evaluation.settings.metric import Metric
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS

Row = Mapping[str, Any]


def as_text(stages: Sequence[StageComparison], notes: Sequence[str]) -> str:
    """Return the comparison of every stage that both runs have as text, then what is not compared."""
    return "\n\n".join([*map(_stage, stages), *(f"not compared: {note}" for note in notes)])


def as_json(stages: Sequence[StageComparison], notes: Sequence[str]) -> dict[str, Any]:
    """Return the same for programs: rows as in `comparison.csv`, and which side is better since when."""
    found = [
        {
            "title": stage.title,
            "rows": [row for of_match in stage.rows for row in of_match],
            "leads": [lead._asdict() for lead in stage.leads],
            "notes": stage.notes,
        }
        for stage in stages
    ]
    return {"stages": found, "notes": notes}


def is_worse_at_last(stages: Sequence[StageComparison]) -> bool | None:
    """Return whether A is worse at the last checkpoints of any stage; None if one has nothing tested."""
    last = [stage.rows[-1] for stage in stages]
    if not all(any(row["p"] is not None for row in _shown(rows)) for rows in last):
        return None
    return any(_summary(rows)[1] for rows in last)


def _stage(stage: StageComparison) -> str:
    labels = [match.label for match in stage.matched]
    overall = [lead for lead in stage.leads if lead.item == OVERALL]
    text = [f"{stage.title}, compared at {first_few(labels)}"]
    if len(labels) > 1:
        head = ["", "tier", "metric", "A", "B", "A - B", "95 %", "95 %, all steps", "p"]
        text.append(as_table([head, *_by_step(stage, {lead[:3] for lead in overall})]))
    text.append(f"At {labels[-1]}:\n{_delta_table(stage.rows[-1])}")
    text.append("\n".join(lead.sentence for lead in overall))
    text.append("\n".join([_summary(stage.rows[-1])[0], *stage.notes]))
    return "\n\n".join(filter(None, text))


def _by_step(stage: StageComparison, shown: set[Any]) -> Iterator[list[str]]:
    for match, rows in zip(stage.matched, stage.rows, strict=True):
        for row in rows:
            if (row["tier"], row["item"], f"delta_{row['metric']}") in shown:
                wide = _interval(row, "low_all", "high_all")
                yield [match.label, *_values(row), _interval(row), wide, _p(row["p"])]


def _summary(rows: TableRows) -> tuple[str, bool]:
    """Return in words what is significantly worse, items by Holm's correction, and whether anything is."""
    primary = [row for row in rows if row["primary"]]
    worse = [row for row in primary if row["flag"] == "worse"]
    means = [row for row in _shown(rows) if not row["primary"] and row["flag"] == "worse"]
    overall = dict.fromkeys(f"{row['tier']} {_metric(row).words}" for row in means)
    text = f"{len(worse)} of {len(primary)} items significantly worse (Holm-corrected)"
    text += f"; means that are worse, each by its own test: {', '.join(overall)}" if overall else ""
    return text, bool(worse or overall)


def _shown(rows: TableRows) -> TableRows:
    return [row for row in rows if row["primary"] or is_mean(row["tier"], row["item"])]


def _delta_table(rows: TableRows) -> str:
    table = [["tier", "item", "metric", "A", "B", "A - B", "95 %", "p", "p (Holm)", "MDE", "flag"]]
    for row in _shown(rows):
        tier, *values = _values(row)
        mde = "–" if row["mde"] is None else _metric(row).number(row["mde"])
        tested = _p(row["p"]), _p(row["p_holm"]), mde, row["flag"] or ""
        table.append([tier, row["item"], *values, _interval(row), *tested])
    return as_table(table)


def _values(row: Row) -> list[str]:
    metric = _metric(row)
    values = metric.number(row["value"]), metric.number(row["against_value"])
    return [row["tier"], metric.column, *values, metric.number(row["delta"], "+")]


def _interval(row: Row, low: str = "delta_low", high: str = "delta_high") -> str:
    return "–" if None in (row[low], row[high]) else _metric(row).interval(row[low], row[high])


def _metric(row: Row) -> Metric:
    return TIERS[row["tier"]].metric(row["metric"])


def _p(p: float | None) -> str:
    return "–" if p is None else f"{p:.2g}"


def compare_configured(plans: Mapping[str, StagePlan]) -> tuple[list[str], list[str]]:
    """Compare this run with the configured ones and write `comparison.csv`, which goes without any.

    Returns sentences on which run is better and since when, and on those that cannot be compared.
    """
    config = next(iter(plans.values())).config
    compared, better, failed = list[StageComparison](), list[str](), list[str]()
    for name, other in config.runs.items():
        try:
            if tiers_in(Path(other.path)):  # one checkpoint: a line in the curves
                continue
            stages, _ = compare_runs(this_run(plans), find_run(name, Path(other.path)), other.by)
        except (EvaluationError, OSError) as error:
            failed.append(f"runs.{name}: {error}")
            continue
        compared += stages
        better += [
            f"This run (A) and {name} (B), {stage.title}: {lead.sentence}"
            for stage in stages
            for lead in stage.leads
            if lead.item == OVERALL
            and lead.metric.removeprefix("delta_") == TIERS[lead.tier].headline
        ]
    path = Path(config.results) / COMPARISON
    if config.runs:
        write_comparison(path, compared)
    else:
        path.unlink(missing_ok=True)
    return better, failed
