"""Compute log-probabilities of requests and of blocks of text; both are rows of batches.

While a pass runs, a thread packs the rows of the next passes. The scores of a pass are fetched only
after the next pass has begun, so that a GPU does not wait.
"""

import contextlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from evaluation.errors import NonFiniteError
from evaluation.metrics.positions import bin_starts
from evaluation.progress import progress
from evaluation.scoring.engine.batches import PASS_TOKENS, Batch, group_rows
from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.engine.head import Pending
from evaluation.scoring.engine.packed_rows import PackedRow, packed_row, plan_requests
from evaluation.scoring.engine.tries import Piece, Trie, pack
from evaluation.scoring.engine.window import BlockNats, Request, Score

SHORTEST_ROWS = (96, 128, 192, 256, 384, 512)
"""Lengths that are tried for rows on CPU whose inputs share nothing."""

AHEAD = 4
"""Number of batches that are packed ahead; one of 16,384 tokens takes 0.8 MB."""

Item = TypeVar("Item")

_END = object()


@dataclass(frozen=True)
class PackedWork:
    """Rows, which are made when they are needed, and the owners (requests or blocks) of their scores.

    `row` makes a row, and `alone` a row of a single owner; `name` is an owner's for messages. `is_text`:
    rows are blocks of text of equal length, whose scores are also summed by position. `bins` are the
    first positions of the bins.
    """

    lengths: Sequence[int]
    row: Callable[[int], PackedRow]
    owners: int
    name: Callable[[int], str]
    alone: Callable[[int], PackedRow]
    is_text: bool
    bins: Sequence[int] = (0,)


class Totals(NamedTuple):
    """Summed log-probability of each owner in nats, and whether all its tokens are greedy.

    For blocks of text also the summed log-probabilities and the numbers of tokens by position.
    """

    logprob: NDArray[np.float64]  # (owners,)
    is_greedy: NDArray[np.bool_]  # (owners,)
    logprob_by_position: NDArray[np.float64]  # (owners, bins)
    tokens_by_position: NDArray[np.int64]  # (owners, bins)


def score_requests(
    engine: Engine, requests: Sequence[Request], *, progress: str | None = None
) -> list[Score]:
    """Score requests, each with a context and a continuation.

    Args:
        requests: Requests that fit the context window, or their plan.

    Raises:
        NonFiniteError: When the model returns NaN or infinity; it names the request.
        ScoringError: When a token has no embedding, or a GPU has too little memory.
    """
    if not requests:
        return []
    plan = plan_requests(requests)
    pieces = _choose_rows(engine, plan.trie)
    work = PackedWork(
        lengths=[piece.size for piece in pieces],
        row=lambda index: packed_row(plan, pieces[index]),
        owners=len(plan),
        name=plan.name,
        alone=lambda index: _single_row(plan[index]),
        is_text=False,
    )
    totals = _run(engine, work, progress)
    found = zip(totals.logprob, totals.is_greedy, strict=True)
    return [Score(float(nats), bool(greedy)) for nats, greedy in found]


@contextlib.contextmanager
def ahead(items: Iterable[Item], most: int) -> Iterator[Iterator[Item]]:
    """Iterate over items in order, while a thread makes some of them ahead.

    An error in making an item is raised where that item is taken. When the block ends, also by an
    error, the thread has ended, too.
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


def _run(engine: Engine, work: PackedWork, label: str | None) -> Totals:
    """Score all rows, the longest first."""
    owners, shape = work.owners, (work.owners, len(work.bins))
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
    bar = progress(label, sum(work.lengths), "tok")
    with bar, ahead(batches, AHEAD) as packed, engine.prepared():
        for batch in packed:
            begun.append((batch, engine.launch(batch)))
            if len(begun) > 1:
                _add(engine, work, totals, *begun.popleft())
            bar.update(batch.real_tokens)
        while begun:
            _add(engine, work, totals, *begun.popleft())
    return totals


def _add(engine: Engine, work: PackedWork, totals: Totals, batch: Batch, pending: Pending) -> None:
    """Add a pass's scores to their owners'; raise like `_run`."""
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
            f"{work.name(int(_culprit(engine, work, broken)))}: the model returns NaN or infinite "
            "values; its weights may be damaged, or too large for the dtype that it runs in (try "
            "scoring.dtype: float32)"
        )


def _culprit(engine: Engine, work: PackedWork, broken: Iterable[int]) -> int:
    """Return the first owner whose scores are broken even when it is alone in a row.

    A masked token has weight 0, but 0 times NaN is NaN: one broken token breaks its whole row.
    """
    first, *others = broken
    for owner in (first, *others):
        scores = engine.score(engine.collate([work.alone(owner)], is_text=work.is_text))
        if not np.isfinite(scores.logprob).all():
            return owner
    return first


def score_blocks(
    engine: Engine,
    tokens: torch.Tensor,
    document_starts: torch.Tensor | None = None,
    *,
    progress: str | None = None,
) -> BlockNats:
    """Return the negative log-likelihood of blocks of text, in total and by position, and counts of tokens.

    Every token but the first is predicted from all tokens before it in its block. With
    `document_starts` only those of its document count, and a document's first token is not scored.

    Args:
        tokens: Token ids, (blocks, length), any integer type.
        document_starts: Flat positions at which documents begin; None for scores within blocks.
    """
    blocks, length = tokens.shape
    begins = np.zeros((blocks, length), dtype=np.bool_)
    begins[:, 0] = True
    if document_starts is not None:
        begins.reshape(-1)[document_starts.numpy()] = True
    scored = length - begins.sum(axis=1)
    kept = np.flatnonzero(scored)

    def row(block: int) -> PackedRow:
        return _block_row(tokens[block].numpy(), begins[block], block)

    work = PackedWork(
        lengths=[length] * len(kept),
        row=lambda index: row(int(kept[index])),
        owners=blocks,
        name=lambda block: f"block {block}",
        alone=row,
        is_text=True,
        bins=bin_starts(length),
    )
    totals = _run(engine, work, progress)
    return BlockNats(
        -totals.logprob, scored, -totals.logprob_by_position, totals.tokens_by_position
    )


def _block_row(tokens: NDArray[np.integer], begins: NDArray[np.bool_], block: int) -> PackedRow:
    """Return the row of a block of text."""
    index = np.arange(len(tokens))
    starts = np.flatnonzero(begins)
    ends = np.append(starts[1:], len(tokens))
    sequence = np.cumsum(begins) - 1
    predicted = np.flatnonzero(~begins)
    return PackedRow(
        tokens=tokens.astype(np.int64),
        depth=index - starts[sequence],
        end=ends[sequence],
        pair_query=predicted - 1,
        pair_token=tokens[predicted].astype(np.int64),
        owners=np.array([block]),
        counts=np.array([len(predicted)]),
    )


def _choose_rows(engine: Engine, trie: Trie) -> list[Piece]:
    """Cut a trie into rows: full rows of fixed shapes if compiled, otherwise the cheapest rows.

    On CPU, inputs that share nothing gain nothing from a long row, but a batch of few short rows may be
    half empty. So several shortest lengths are tried.
    """
    if engine.is_compiled:
        return pack(trie, engine.row_capacity)
    capacities = (partial(engine.row_capacity, shortest=length) for length in SHORTEST_ROWS)
    return min((pack(trie, capacity) for capacity in capacities), key=partial(_cost, engine))


def _cost(engine: Engine, pieces: list[Piece]) -> float:
    """Return the multiply-adds of rows on CPU, where each group is one padded forward pass."""
    lengths = [piece.size for piece in pieces]
    per_token, per_pair = engine.costs
    groups = [
        [lengths[index] for index in group] for group in group_rows(lengths, engine.row_tokens)
    ]
    return sum(
        len(group) * (group[0] * per_token + group[0] ** 2 * per_pair) + PASS_TOKENS * per_token
        for group in groups
    )


def _single_row(request: Request) -> PackedRow:
    plan = plan_requests([request])
    return packed_row(plan, Piece(len(plan.trie.tokens), [(0, 1)]))
