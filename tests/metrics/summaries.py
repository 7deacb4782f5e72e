"""Summaries of tables of candidates and blocks as tier files have them."""

from typing import Any

import pyarrow as pa

from evaluation.grading.tiers import slice_values
from evaluation.grading.units import block_units
from evaluation.metrics.measures import measure_questions, summarize_questions
from evaluation.metrics.perplexity import check_blocks
from evaluation.metrics.variance import Floats
from evaluation.settings.sources import Normalization
from evaluation.settings.tiers import TIERS, TaskKind


def summarize_choices(
    table: pa.Table, primary: Normalization, kind: TaskKind = "ranked"
) -> dict[str, Any]:
    return summarize_questions(measure_questions(table, kind), primary)


def choice_measures(table: pa.Table, kind: TaskKind = "ranked") -> dict[str, Floats]:
    return dict(measure_questions(table, kind).measures)


def summarize_blocks(table: pa.Table) -> dict[str, Any]:
    check_blocks(table)
    return slice_values(TIERS["tier2"], block_units(TIERS["tier2"], table, None))
