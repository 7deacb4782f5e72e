"""Tier2 and Tier3: blocks and questions from stored rows, and what each contributes to each metric.

Bits per byte makes models with different tokenizers comparable: the information of all scored tokens over
the UTF-8 bytes of all scored text, whatever it was cut into. It is a ratio of sums, not a mean of ratios.
The first token of a block (with document attention, of a document) is context: neither its nats nor its
bytes count. A separator between documents is predicted, so its nats count; it has no bytes.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from evaluation.errors import NonFiniteError, ScoringError
from evaluation.metrics.layout import Layout
from evaluation.metrics.measures import Questions
from evaluation.metrics.positions import positions_of
from evaluation.prefill.caches import QuestionLine
from evaluation.results.columns import TEXT, arrow_schema
from evaluation.results.units import Units, units_of
from evaluation.settings.tiers import Tier
from evaluation.store import ScoreStore

CANDIDATE_SCHEMA = arrow_schema(
    {
        "item": "string",
        **dict.fromkeys(("cluster", "stratum"), TEXT),
        "candidate": "int16",
        "gold": "bool",
        **dict.fromkeys(("logprob", "unconditional"), "double"),
        **dict.fromkeys(("tokens", "chars", "bytes"), "int32"),
        "is_greedy": "bool",
        **dict.fromkeys(("question", "row"), TEXT),
    }
)
"""A row for each candidate of a task, a question's rows together."""


def stored_rows(
    store: ScoreStore, keys: Sequence[str], prefix: str
) -> tuple[list[dict[str, Any]], list[Mapping[str, Any]]]:
    """Return the row of each key in the store, in order, and the summaries of the scores."""
    rows, used = store.find_rows(prefix, set(keys), lambda row, _: row)
    if lacking := [key for key in keys if key not in rows]:
        raise ScoringError(
            f"{store.folder}: {len(lacking)} rows of {prefix} are missing; score this checkpoint again"
        )
    return [rows[key] for key in keys], [*used.values()]


def block_units(tier: Tier, table: pa.Table, data: object) -> Units:
    """Return a slice's blocks in order; `data` names the text, which slices may share.

    Raises:
        NonFiniteError: A loss is NaN or infinite; it names the block.
        ScoringError: Nothing is scored.
    """
    rows = table.sort_by("block")
    broken = np.flatnonzero(~np.isfinite(rows["nats"].to_numpy()))
    if len(broken):
        raise NonFiniteError(
            f"block {rows['block'][broken[0]]}: its loss is NaN or infinite; check the checkpoint's weights"
        )
    columns = {name: rows[name].to_numpy().astype(np.float64) for name in tier.summed}
    if not columns["tokens"].sum() or not columns["bytes"].sum():
        raise ScoringError(
            "no token of the slice is scored: its blocks are too short or empty; prefill it with a "
            "larger `sequence_length`"
        )
    ids = list(map(str, rows["block"].to_pylist()))
    layout = Layout(len(ids), sources=[[f"{data} {block}" for block in ids]], is_text=True)
    return units_of(tier, ids, layout, columns, positions=positions_of(rows))


def slice_values(tier: Tier, units: Units) -> dict[str, float | None]:
    """Return a slice's metrics, and what they were computed over."""
    measured = {tier.metric(name): ratio for name, ratio in units.measured.items()}
    return {
        **{metric.key: metric.linked(ratio.value) for metric, ratio in measured.items()},
        "tokens": int(units.sums["tokens"].sum()),
        "blocks": len(units.ids),
        "bytes": int(units.sums["bytes"].sum()),
    }


def candidates(lines: Sequence[QuestionLine], stored: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return a row for each candidate, by each question's row in the store, in the same order."""
    counts = [len(line.sizes) for line in lines]
    sizes = np.array(list(chain.from_iterable(line.sizes for line in lines))).reshape(-1, 3).T

    def repeated(key: str) -> list[Any]:
        pairs = zip(lines, counts, strict=True)
        return [value for line, n in pairs for value in [getattr(line, key)] * n]

    def flat(key: str) -> list[Any]:
        pairs = zip(stored, counts, strict=True)
        return list(chain.from_iterable(row[key] or [None] * n for row, n in pairs))

    columns = {
        "item": repeated("id"),
        **{key: repeated(key) for key in ("cluster", "stratum", "question", "row")},
        "candidate": [number for count in counts for number in range(count)],
        "gold": [number == line.gold for line in lines for number in range(len(line.sizes))],
        **{key: flat(key) for key in ("logprob", "unconditional", "is_greedy")},
        **dict(zip(("tokens", "chars", "bytes"), sizes, strict=True)),
    }
    return pa.Table.from_pydict(columns, schema=CANDIDATE_SCHEMA)


def question_units(tier: Tier, questions: Questions, primary: str) -> Units:
    """Return a task's questions with credits by every way of comparing candidates, and measures.

    Credits by the primary one have the headline's name, the others `<headline>_<name>`.
    """
    credits = {tier.headline_by(way, primary): one for way, one in questions.credits.items()}
    return units_of(tier, questions.ids, questions.layout, {**credits, **questions.measures})
