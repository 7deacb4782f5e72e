"""A stage's score matrix, an item a row and a step a column: `score_matrix.csv`, `score_matrix.tex`.

Cells are compared with the bridge. Values and arrows are those of `summary.*` and `bridge_deltas.*`.
"""

from collections.abc import Sequence

from evaluation.bridge.delta import OVERALL
from evaluation.files import write_text
from evaluation.reporting.tables.side_by_side import Column, as_csv, heat_map, shown_metric
from evaluation.reporting.tables.stage_results import Scored, StageResults
from evaluation.results.deltas_file import DeltaRow
from evaluation.results.stage_files import MATRIX, MATRIX_TEX

NOTE = (
    "Colour: difference from the bridge, blue for the better. Arrows: significant by the paired test "
    "(Holm's correction over the step's items; an overall value by its own test)."
)


def write_matrix(found: StageResults) -> None:
    """Writes both files."""
    columns = matrix(found)
    write_text(found.plan.results / MATRIX, as_csv(columns))
    write_text(found.plan.results / MATRIX_TEX, heat_map(columns, NOTE))


def matrix(found: StageResults) -> list[Column]:
    """The bridge, then every step."""
    columns = [] if found.bridge is None else [_column("bridge", found.bridge, ())]
    for step, scored in sorted(found.steps.items()):
        content = found.deltas.get(step)
        columns.append(_column(f"step {step}", scored, content.deltas if content else ()))
    return columns


def _column(label: str, scored: Scored, rows: Sequence[DeltaRow]) -> Column:
    values = [value for value in scored.values if value.metric == shown_metric(value.tier)]
    own = {
        (row.tier, row.item): row for row in rows if row.metric == f"delta_{shown_metric(row.tier)}"
    }
    return Column(
        label=label,
        values={
            (v.tier, v.item): v for v in sorted(values, key=lambda value: value.item != OVERALL)
        },
        flags={key: row.flag for key, row in own.items() if row.flag is not None},
        deltas={key: row.delta for key, row in own.items()},
    )
