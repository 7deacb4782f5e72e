"""Runs rows through an engine and sums what each request or block asked for.

While a pass runs, a thread lays out the rows of the next ones, and its scores are fetched only when
the pass after it has begun, or on several GPUs as many more: a GPU waits for nobody.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evaluation.errors import NonFiniteError
from evaluation.scoring.engine.ahead import ahead
from evaluation.scoring.engine.batches import Batch
from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.engine.layer_devices import device_count
from evaluation.scoring.engine.packed_rows import Row
from evaluation.scoring.engine.pending import Pending

AHEAD = 4
"""Batches laid out before their turn; 0.8 MB each of 16,384 tokens."""


@dataclass(frozen=True)
class Work:
    """Rows, made when their turn comes, and the owners (requests or blocks) of what they ask.

    `alone` makes a row of a single owner. `is_text`: rows are blocks of text, all of one length.
    """

    lengths: Sequence[int]
    row: Callable[[int], Row]
    names: Sequence[str]
    alone: Callable[[int], Row]
    is_text: bool


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
    batches = (
        engine.collate([work.row(i) for i in group], is_text=work.is_text)
        for group in engine.groups(work.lengths, is_text=work.is_text)
    )
    begun: deque[tuple[Batch, Pending]] = deque()
    devices = device_count(engine.model)
    with ahead(batches, AHEAD) as laid_out, engine.prepared():
        for batch in engine.progress(laid_out, sum(work.lengths), progress):
            begun.append((batch, engine.launch(batch)))
            if len(begun) > devices:
                _add(engine, work, totals, *begun.popleft())
        while begun:
            _add(engine, work, totals, *begun.popleft())
    return totals


def _add(engine: Engine, work: Work, totals: Totals, batch: Batch, pending: Pending) -> None:
    """Adds a pass's scores to their owners'; raises like `run`."""
    scores = pending.scores()
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


def _culprit(engine: Engine, work: Work, broken: Iterable[int]) -> int:
    """The first owner that is broken by itself.

    A masked token has weight 0, but 0 times NaN is NaN: one broken token spreads through its row.
    """
    first, *others = broken
    for owner in (first, *others):
        scores = engine.score(engine.collate([work.alone(owner)], is_text=work.is_text))
        if not np.isfinite(scores.logprob).all():
            return owner
    return first
