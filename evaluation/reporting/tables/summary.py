"""A stage's scores and deltas in long form: `summary.csv`, `summary.parquet`, `summary.md`."""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from evaluation.bridge.delta import OVERALL, is_mean
from evaluation.checkpoints.config_files import configuration_file
from evaluation.files import write_parquet, write_text
from evaluation.reporting.headlines import recommendation_line, steps_in_words
from evaluation.reporting.tables.side_by_side import ARROWS
from evaluation.reporting.tables.stage_results import Scored, StageResults
from evaluation.reporting.tables.values import Value
from evaluation.results.columns import arrow_schema, write_csv
from evaluation.results.delta_rows import DeltaRow
from evaluation.results.stage_files import SUMMARY, SUMMARY_COLUMNS, SUMMARY_TABLE, SUMMARY_TEXT
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS, Tier

SCHEMA = arrow_schema(SUMMARY_COLUMNS)

MARKUP = re.compile(r"[\\`*|~$]|(?<!\w)_|_(?!\w)|\[(?=[^\]]*\][(\[:])")
"""Characters that begin Markdown's markup within a line."""


FROM_DELTA = {"delta_low": "low", "delta_high": "high"}
"""Columns that have another name in a delta; all others have the name of the value's or delta's field."""


def summary_rows(stage: StageResults) -> list[dict[str, Any]]:
    """Return the rows of the summary table, the bridge's last."""
    rows: list[dict[str, Any]] = []
    for step, scored in stage.steps.items():
        content = stage.deltas.get(step)
        columns: dict[str, Any] = {
            "role": scored.results.header.role,
            "deleted": step in stage.deleted,
        }
        columns["verdict"] = stage.judged(step).verdict if content else None
        rows += _rows(stage.plan, scored, content.deltas if content else (), columns)
    if stage.bridge is not None:
        is_deleted = configuration_file(Path(stage.bridge.results.header.checkpoint)) is None
        rows += _rows(stage.plan, stage.bridge, (), {"role": "bridge", "deleted": is_deleted})
    return rows


def _rows(
    plan: StagePlan, scored: Scored, deltas: Iterable[DeltaRow], columns: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    by_key = {(row.tier, row.item, row.metric): row for row in deltas}
    header = scored.results.header
    columns = {**columns, "stage": plan.name, "step": header.step}
    is_step = columns["role"] == "step" and header.step is not None
    columns["name"] = plan.stage.names.get(header.step or 0) if is_step else None
    for value in scored.values:
        delta = by_key.get((value.tier, value.item, f"delta_{value.metric}"))
        yield {name: columns.get(name, _column(name, value, delta)) for name in SCHEMA.names}


def _column(name: str, value: Value, delta: DeltaRow | None) -> Any:
    if hasattr(value, name):
        return getattr(value, name)
    return getattr(delta, FROM_DELTA.get(name, name), None)


def write_tables(stage: StageResults) -> None:
    """Write the three tables."""
    plan, rows = stage.plan, summary_rows(stage)
    write_csv(plan.results / SUMMARY_TABLE, SUMMARY_COLUMNS, rows)
    write_parquet(plan.results / SUMMARY, pa.Table.from_pylist(rows, schema=SCHEMA))
    write_text(plan.results / SUMMARY_TEXT, _markdown(stage, rows))


def _markdown(stage: StageResults, rows: Sequence[dict[str, Any]]) -> str:
    """Return a table of each metric in Markdown, of losses only in the unit that is shown.

    Each item is a row, each step a column; the delta against the bridge is in brackets. What is missing,
    deleted or damaged is at the top.
    """
    parts = [f"# {_plain(stage.plan.name)}\n"]
    parts += [f"Missing: {_plain(', '.join(stage.missing))}\n"] if stage.missing else []
    parts += (
        [f"Deleted since scored: {_plain(steps_in_words(stage.deleted))}\n"]
        if stage.deleted
        else []
    )
    parts += [f"Damaged: {_plain(line)}\n" for line in stage.damaged]
    parts += [_plain(line) + "\n" for line in _verdict_lines(stage)]
    for name, tier in TIERS.items():
        for metric in _metrics_shown(tier):
            shown = [row for row in rows if (row["tier"], row["metric"]) == (name, metric)]
            if shown:
                heading = tier.metric(metric).column
                parts.append(f"## {name}: {heading}\n\n{_markdown_table(stage.plan, shown)}\n")
    return "\n".join(parts)


def _metrics_shown(tier: Tier) -> list[str]:
    """Return the names of a tier's metrics, without those that are what is shown in another unit."""
    same = (
        []
        if tier.kind == "credit"
        else [metric for metric in tier.metrics if not metric.is_secondary]
    )
    others = (metric.name for metric in tier.metrics if metric not in same)
    return list(dict.fromkeys([tier.shown, *others]))


def _verdict_lines(stage: StageResults) -> list[str]:
    advice = stage.recommendation
    if advice is None or advice.step is None:
        return []
    line = recommendation_line(advice, stage.plan.label)
    return [line[:1].upper() + line[1:]]


def _markdown_table(plan: StagePlan, rows: Sequence[dict[str, Any]]) -> str:
    columns = list(dict.fromkeys((row["role"], row["step"]) for row in rows))
    means = {row["item"] for row in rows if is_mean(row["tier"], row["item"])}
    names = dict.fromkeys(row["item"] for row in rows)
    items = sorted(names, key=lambda item: (item == OVERALL, item in means))
    cells = {(row["item"], row["role"], row["step"]): row for row in rows}
    titles = ["bridge" if role == "bridge" else _plain(plan.label(step)) for role, step in columns]
    lines = [_line(["item", *titles]), _line(["---", *("---:" for _ in columns)])]
    lines += [
        _line([_plain(item), *(_cell(cells.get((item, *column))) for column in columns)])
        for item in items
    ]
    return "\n".join(lines) + "\n"


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cell(row: dict[str, Any] | None) -> str:
    if row is None:
        return "–"
    metric = TIERS[row["tier"]].metric(row["metric"])
    text = metric.number(row["value"])
    if row["delta"] is not None:
        mark = ARROWS.get(row["flag"] or "")
        text += f" ({' '.join(filter(None, (metric.number(row['delta'], '+'), mark)))})"
    return text


def _plain(text: str) -> str:
    """Escape what Markdown would read as markup, HTML or the end of a cell."""
    text = MARKUP.sub(r"\\\g<0>", " ".join(text.split()))
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
