"""Runs rows through an engine and sums the scores of each request or block.

While a pass runs, a thread packs the rows of the next ones, and its scores are fetched only when
the pass after it has begun, or on several GPUs as many more: a GPU waits for nobody.
"""

import contextlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from evaluation.errors import NonFiniteError
from evaluation.progress import progress
from evaluation.scoring.engine.batches import Batch
from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.engine.head import Pending
from evaluation.scoring.engine.packed_rows import PackedRow

AHEAD = 4
"""Batches packed before their turn; 0.8 MB each of 16,384 tokens."""

Item = TypeVar("Item")

_END = object()


@dataclass(frozen=True)
class Work:
    """Rows, made when their turn comes, and the owners (requests or blocks) of what they ask.

    `alone` makes a row of a single owner. `is_text`: rows are blocks of text, all of one length, which
    are summed by position, too. `bins` are the first positions of the bins.
    """

    lengths: Sequence[int]
    row: Callable[[int], PackedRow]
    names: Sequence[str]
    alone: Callable[[int], PackedRow]
    is_text: bool
    bins: Sequence[int] = (0,)


class Totals(NamedTuple):
    """Per owner its summed log-probability in nats, and whether all its tokens are greedy.

    Of blocks of text also the summed log-probabilities and the number of tokens by position.
    """

    logprob: NDArray[np.float64]  # (owners,)
    is_greedy: NDArray[np.bool_]  # (owners,)
    logprob_by_position: NDArray[np.float64]  # (owners, bins)
    tokens_by_position: NDArray[np.int64]  # (owners, bins)


@contextlib.contextmanager
def ahead(items: Iterable[Item], most: int) -> Iterator[Iterator[Item]]:
    """Give the same items in the same order, some of them made before they are taken.

    What making them raises is raised where they are taken, after those made before. When the
    block ends, however it does, the thread has ended too.

    Args:
        items: Items, made one by one as they are taken.
        most: How many are made ahead.

    Yields:
        An iterator over the items.
    """
    pool = ThreadPoolExecutor(1, thread_name_prefix="ahead")
    source = iter(items)

    def take() -> Iterator[Item]:
        waiting = deque(pool.submit(next, source, _END) for _ in range(most))
        while (item := waiting.popleft().result()) is not _END:
            waiting.append(pool.submit(next, source, _END))
            yield item  # type: ignore[misc]  # mypy cannot tell it from the end

    try:
        yield take()
    finally:
        pool.shutdown(cancel_futures=True)


def run(engine: Engine, work: Work, label: str | None) -> Totals:
    """Score all rows, the longest first.

    Args:
        engine: The model.
        work: The rows, and whose they are.
        label: Label of a progress bar on stderr; None shows none.

    Returns:
        Sums for each owner, in the order of `work.names`.

    Raises:
        NonFiniteError: When the model gives NaN or infinity; it names an owner.
        ScoringError: When a token has no embedding, or a GPU has too little memory.
    """
    owners, shape = len(work.names), (len(work.names), len(work.bins))
    totals = Totals(
        np.zeros(owners),
        np.ones(owners, dtype=np.bool_),
        np.zeros(shape),
        np.zeros(shape, dtype=np.int64),
    )
    batches = (
        engine.collate([work.row(i) for i in group], is_text=work.is_text)
        for group in engine.groups(work.lengths, is_text=work.is_text)
    )
    begun: deque[tuple[Batch, Pending]] = deque()
    devices = len({parameter.device for parameter in engine.model.parameters()})
    bar = progress(label, sum(work.lengths), "tok")
    with bar, ahead(batches, AHEAD) as packed, engine.prepared():
        for batch in packed:
            begun.append((batch, engine.launch(batch)))
            if len(begun) > devices:
                _add(engine, work, totals, *begun.popleft())
            bar.update(batch.real_tokens)
        while begun:
            _add(engine, work, totals, *begun.popleft())
    return totals


def _add(engine: Engine, work: Work, totals: Totals, batch: Batch, pending: Pending) -> None:
    """Add a pass's scores to their owners'; raise like `run`."""
    scores = pending.scores()
    starts = np.cumsum(batch.counts) - batch.counts
    totals.logprob[batch.owners] = np.add.reduceat(scores.logprob, starts)
    totals.is_greedy[batch.owners] = np.logical_and.reduceat(scores.is_greedy, starts)
    if work.is_text:
        number = np.searchsorted(work.bins, batch.positions, side="right") - 1
        place = np.repeat(batch.owners, batch.counts), number
        np.add.at(totals.logprob_by_position, place, scores.logprob)
        np.add.at(totals.tokens_by_position, place, 1)
    broken = batch.owners[~np.isfinite(totals.logprob[batch.owners])]
    if len(broken):
        raise NonFiniteError(
            f"{work.names[_culprit(engine, work, broken)]}: the model gives NaN or infinite "
            "values; its weights may be damaged, or too large for the type it runs in (try "
            "scoring.dtype: float32)"
        )


def _culprit(engine: Engine, work: Work, broken: Iterable[int]) -> int:
    """Return the first owner that is broken by itself.

    A masked token has weight 0, but 0 times NaN is NaN: one broken token spreads through its row.
    """
    first, *others = broken
    for owner in (first, *others):
        scores = engine.score(engine.collate([work.alone(owner)], is_text=work.is_text))
        if not np.isfinite(scores.logprob).all():
            return owner
    return first
