"""A stage's scores and deltas in long form: `summary.csv`, `summary.parquet`, `summary.md`."""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from evaluation.bridge.delta import OVERALL
from evaluation.dependencies.known_steps import is_deleted
from evaluation.files import write_parquet, write_text
from evaluation.reporting.headlines import provisional, steps_in_words
from evaluation.reporting.tables.score_matrix import write_matrix
from evaluation.reporting.tables.stage_results import Scored, StageResults
from evaluation.reporting.tables.values import Value
from evaluation.results.columns import arrow_schema, write_csv
from evaluation.results.stage_files import SUMMARY, SUMMARY_COLUMNS, SUMMARY_TABLE, SUMMARY_TEXT
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS

SCHEMA = arrow_schema(SUMMARY_COLUMNS)

MARKUP = re.compile(r"[\\`*|~$]|(?<!\w)_|_(?!\w)|\[(?=[^\]]*\][(\[:])")
"""What begins Markdown's markup within a line."""


def summary_rows(found: StageResults) -> list[dict[str, Any]]:
    """Rows of SCHEMA, the bridge's last."""
    rows: list[dict[str, Any]] = []
    for step, scored in found.steps.items():
        gone = step in found.gone
        content = found.deltas.get(step)
        rows_of_step = content.deltas if content else ()
        deltas = {(row.tier, row.item, row.metric): row for row in rows_of_step}
        for row, value in _rows(found.plan, scored, "step"):
            delta = deltas.get((value.tier, value.item, f"delta_{value.metric}"))
            if delta is not None:
                row |= {
                    "delta": delta.delta,
                    "delta_low": delta.low,
                    "delta_high": delta.high,
                    "p_holm": delta.p_holm,
                    "mde": delta.mde,
                    "verdict": delta.flag,
                }
            step_verdict = content.verdict if content else None
            rows.append({**row, "step_verdict": step_verdict, "gone": gone})
    if found.bridge is not None:
        gone = is_deleted(Path(found.bridge.results.header.checkpoint))
        rows += [{**row, "gone": gone} for row, _ in _rows(found.plan, found.bridge, "bridge")]
    return rows


def _rows(plan: StagePlan, scored: Scored, role: str) -> Iterator[tuple[dict[str, Any], Value]]:
    for value in scored.values:
        row = dict.fromkeys(SCHEMA.names)
        known = {name: getattr(value, name) for name in SCHEMA.names if hasattr(value, name)}
        yield (
            {**row, "stage": plan.name, "step": scored.results.header.step, "role": role, **known},
            value,
        )


def write_tables(found: StageResults) -> None:
    """Writes the three tables, and the score matrix."""
    plan, rows = found.plan, summary_rows(found)
    write_csv(plan.results / SUMMARY_TABLE, SUMMARY_COLUMNS, rows)
    write_parquet(plan.results / SUMMARY, pa.Table.from_pylist(rows, schema=SCHEMA))
    write_text(plan.results / SUMMARY_TEXT, markdown(found, rows))
    write_matrix(found)


def markdown(found: StageResults, rows: Sequence[dict[str, Any]]) -> str:
    """A table of each tier's headline, and of each measure beside it.

    An item is a row, a step a column; the delta against the bridge stands in brackets.
    """
    parts = [f"# {_plain(found.plan.name)}\n"]
    parts += [f"Missing: {_plain(', '.join(found.missing))}\n"] if found.missing else []
    parts += [f"Gone since scored: {_plain(steps_in_words(found.gone))}\n"] if found.gone else []
    parts += [f"Damaged: {_plain(line)}\n" for line in found.damaged]
    parts += [_plain(line) + "\n" for line in _verdict_lines(found)]
    for name, tier in TIERS.items():
        for metric in (tier.shown, *(metric.name for metric in tier.companions)):
            shown = [row for row in rows if (row["tier"], row["metric"]) == (name, metric)]
            if shown:
                parts.append(f"## {name}: {metric}\n\n{_markdown_table(shown)}\n")
    return "\n".join(parts)


def _verdict_lines(found: StageResults) -> list[str]:
    advice = found.recommendation
    if advice is None or advice.step is None:
        return []
    kind = (advice.kind or "least bad").capitalize()
    return [f"{kind}{provisional(advice)}: step {advice.step} — {advice.why}"]


def _markdown_table(rows: Sequence[dict[str, Any]]) -> str:
    columns = list(dict.fromkeys((row["role"], row["step"]) for row in rows))
    items = sorted(dict.fromkeys(row["item"] for row in rows), key=lambda item: item == OVERALL)
    cells = {(row["item"], row["role"], row["step"]): row for row in rows}
    titles = ["bridge" if role == "bridge" else f"step {step}" for role, step in columns]
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
    digits = TIERS[row["tier"]].metric(row["metric"]).digits
    text = f"{row['value']:.{digits}f}"
    if row["delta"] is not None:
        mark = {"better": " ▲", "worse": " ▼"}.get(row["verdict"] or "", "")
        text += f" ({row['delta']:+.{digits}f}{mark})"
    return text


def _plain(text: str) -> str:
    """Text in which no sign is markup, HTML or the end of a cell."""
    text = MARKUP.sub(r"\\\g<0>", " ".join(text.split()))
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
