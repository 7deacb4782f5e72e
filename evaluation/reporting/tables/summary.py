"""A stage's scores and deltas in long form: `summary.csv`, `summary.parquet`, `summary.md`."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from evaluation.bridge.write import write_csv
from evaluation.files import write_parquet, write_text
from evaluation.reporting.tables.stage_results import Scored, StageResults
from evaluation.reporting.tables.values import OVERALL, Value
from evaluation.settings.plan import StagePlan

SCHEMA = pa.schema(
    [
        ("stage", pa.string()),
        ("step", pa.int64()),
        ("role", pa.string()),
        ("tier", pa.string()),
        ("item", pa.string()),
        ("group", pa.string()),
        ("metric", pa.string()),
        ("value", pa.float64()),
        ("low", pa.float64()),
        ("high", pa.float64()),
        ("chance", pa.float64()),
        ("n", pa.int64()),
        ("delta", pa.float64()),
        ("delta_low", pa.float64()),
        ("delta_high", pa.float64()),
        ("p_holm", pa.float64()),
        ("mde", pa.float64()),
        ("verdict", pa.string()),
        ("step_verdict", pa.string()),
    ]
)
"""One row for each stage, step, tier, item and metric. Stable: new columns go to the end.

`role` is `step` or `bridge`; `verdict` is of the item (better, worse, unclear), `step_verdict` of
the objective (met, not met, undecided).
"""

HEADLINES = {"tier2": "ppl", "tier3": "acc", "tier4": "all_checks_pass_rate"}
"""The metric of each tier that is shown where there is room for one."""


def summary_rows(found: StageResults) -> list[dict[str, Any]]:
    """Rows of SCHEMA, the bridge's last."""
    rows: list[dict[str, Any]] = []
    for step, scored in found.steps.items():
        content = found.deltas.get(step, {"deltas": [], "verdict": None})
        deltas = {(d["tier"], d["item"], d["metric"]): d for d in content["deltas"]}
        for row, value in _rows(found.plan, scored, "step"):
            delta = deltas.get((value.tier, value.item, f"delta_{value.metric}"), {})
            rows.append(
                {
                    **row,
                    "delta": delta.get("delta"),
                    "delta_low": delta.get("low"),
                    "delta_high": delta.get("high"),
                    "p_holm": delta.get("p_holm"),
                    "mde": delta.get("mde"),
                    "verdict": delta.get("flag"),
                    "step_verdict": content["verdict"],
                }
            )
    if found.bridge is not None:
        rows += [row for row, _ in _rows(found.plan, found.bridge, "bridge")]
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
    """Writes the three tables."""
    plan, rows = found.plan, summary_rows(found)
    write_csv(plan.results / "summary.csv", SCHEMA.names, rows)
    write_parquet(plan.results / "summary.parquet", pa.Table.from_pylist(rows, schema=SCHEMA))
    write_text(plan.results / "summary.md", markdown(found, rows))


def markdown(found: StageResults, rows: Sequence[dict[str, Any]]) -> str:
    """One table a tier: an item a row, a step a column, the delta against the bridge in brackets."""
    parts = [f"# {found.plan.name}\n"]
    parts += [f"Missing: {', '.join(found.missing)}\n"] if found.missing else []
    parts += [line + "\n" for line in _verdict_lines(found)]
    for tier, metric in HEADLINES.items():
        shown = [row for row in rows if row["tier"] == tier and row["metric"] == metric]
        if shown:
            parts.append(f"## {tier}: {metric}\n\n{_markdown_table(shown)}\n")
    return "\n".join(parts)


def _verdict_lines(found: StageResults) -> list[str]:
    if found.recommendation is None or found.recommendation["step"] is None:
        return []
    advice = found.recommendation
    return [f"{advice['kind'].capitalize()}: step {advice['step']} — {advice['why']}"]


def _markdown_table(rows: Sequence[dict[str, Any]]) -> str:
    columns = list(dict.fromkeys((row["role"], row["step"]) for row in rows))
    items = sorted(dict.fromkeys(row["item"] for row in rows), key=lambda item: item == OVERALL)
    cells = {(row["item"], row["role"], row["step"]): row for row in rows}
    titles = ["bridge" if role == "bridge" else f"step {step}" for role, step in columns]
    lines = [_line(["item", *titles]), _line(["---", *("---:" for _ in columns)])]
    lines += [
        _line([item, *(_cell(cells.get((item, *column))) for column in columns)]) for item in items
    ]
    return "\n".join(lines) + "\n"


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _cell(row: dict[str, Any] | None) -> str:
    if row is None:
        return "–"
    digits = 3 if row["metric"] == "ppl" else 4
    text = f"{row['value']:.{digits}f}"
    if row["delta"] is not None:
        mark = {"better": " ▲", "worse": " ▼"}.get(row["verdict"] or "", "")
        text += f" ({row['delta']:+.{digits}f}{mark})"
    return text
