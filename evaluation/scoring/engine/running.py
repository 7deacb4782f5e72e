"""Runs rows through an engine and sums what each request or block asked for."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evaluation.errors import NonFiniteError
from evaluation.scoring.engine.batches import Batch, collate, group_rows
from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.engine.rows import Row


@dataclass(frozen=True)
class Work:
    """Rows, made when their turn comes, and the owners (requests or blocks) of what they ask.

    `alone` makes a row of a single owner.
    """

    lengths: Sequence[int]
    row: Callable[[int], Row]
    names: Sequence[str]
    alone: Callable[[int], Row]


class Totals(NamedTuple):
    """Per owner its summed log-probability in nats, and whether all its tokens are greedy."""

    logprob: NDArray[np.float64]
    is_greedy: NDArray[np.bool_]


def run(engine: Engine, work: Work, progress: str | None) -> Totals:
    """Scores all rows, the longest first.

    Raises:
        NonFiniteError: names an owner for which the model gives NaN or infinity.
        ScoringError: a token without an embedding, or too little GPU memory.
    """
    count = len(work.names)
    totals = Totals(np.zeros(count), np.ones(count, dtype=np.bool_))
    groups = group_rows([engine.pad_length(n) for n in work.lengths], engine.row_tokens)
    batches = (_collate(engine, [work.row(i) for i in group]) for group in groups)
    for batch in engine.progress(batches, sum(work.lengths), progress):
        scores = engine.score(batch)
        starts = np.cumsum(batch.counts) - batch.counts
        totals.logprob[batch.owners] = np.add.reduceat(scores.logprob, starts)
        totals.is_greedy[batch.owners] = np.logical_and.reduceat(scores.is_greedy, starts)
        broken = batch.owners[~np.isfinite(totals.logprob[batch.owners])]
        if len(broken):
            raise NonFiniteError(
                f"{work.names[_culprit(engine, work, broken)]}: the model gives NaN or infinite "
                "values; its weights may be damaged, or too large for the type it runs in (try "
                "scoring.dtype: float32)"
            )
    return totals


def _collate(engine: Engine, rows: list[Row]) -> Batch:
    return collate(rows, engine.pad_length(max(map(len, rows))))


def _culprit(engine: Engine, work: Work, broken: Iterable[int]) -> int:
    """The first owner that is broken by itself.

    A masked token has weight 0, but 0 times NaN is NaN: one broken token spreads through its row.
    """
    first, *others = broken
    for owner in (first, *others):
        scores = engine.score(_collate(engine, [work.alone(owner)]))
        if not np.isfinite(scores.logprob).all():
            return owner
    return first
