"""Summaries of tables of candidates and blocks as tier files have them."""

from typing import Any

import pyarrow as pa

from evaluation.grading.texts import block_units, slice_values
from evaluation.metrics.measures import measure_questions, summarize_questions
from evaluation.metrics.variance import Floats
from evaluation.settings.tiers import TIERS, TaskKind


def summarize_choices(table: pa.Table, primary: str, kind: TaskKind = "ranked") -> dict[str, Any]:
    return summarize_questions(measure_questions(table, kind), primary)


def choice_measures(table: pa.Table, kind: TaskKind = "ranked") -> dict[str, Floats]:
    return dict(measure_questions(table, kind).measures)


def summarize_blocks(table: pa.Table) -> dict[str, Any]:
    return slice_values(TIERS["tier2"], block_units(TIERS["tier2"], table, None))
