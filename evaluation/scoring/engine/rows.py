"""Score packed rows: one way from requests and texts to log-probabilities.

The scores of a pass are fetched after the next has begun, so that a GPU works while rows are packed. Sums
are float64.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from evaluation.errors import NonFiniteError
from evaluation.metrics.positions import bin_starts
from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.engine.gpu import HostCopy
from evaluation.scoring.engine.tries import Batch, Ints, PackedInputs, PackedRow, chain, key_of
from evaluation.scoring.engine.window import BlockNats, Request, Score


class RowWork(NamedTuple):
    """Rows, which are made when they are needed; `name` is a sequence's for messages.

    `is_text`: rows are blocks of text of equal length. `bins` are the first positions of bins.
    """

    lengths: Sequence[int]
    row: Callable[[int], PackedRow]
    sequences: int
    name: Callable[[int], str]
    is_text: bool = False
    bins: Sequence[int] = (0,)


class Totals(NamedTuple):
    """Of each sequence: log-probability by bins of positions, and whether all its tokens are greedy."""

    logprob: NDArray[np.float64]  # (sequences, bins)
    tokens: Ints  # (sequences, bins)
    is_greedy: NDArray[np.bool_]  # (sequences,)


def score_requests(engine: Engine, requests: Sequence[Request]) -> list[Score]:
    """Score requests that fit the context window; raise NonFiniteError, which names the first broken one."""
    if not requests:
        return []
    # Candidates of a question share its context, which may have many tokens.
    contexts = {id(request.context): request.context for request in requests}
    keys = {name: key_of(context) for name, context in contexts.items()}
    inputs = (keys[id(each.context)] + key_of(each.continuation[:-1]) for each in requests)
    packed = PackedInputs(inputs, [key_of(each.continuation) for each in requests], engine.capacity)
    work = RowWork(packed.lengths, packed.row, len(requests), lambda index: requests[index].name)
    totals = _run(engine, work)
    sums = totals.logprob.sum(axis=1).tolist()
    return [Score(*pair) for pair in zip(sums, totals.is_greedy.tolist(), strict=True)]


def score_blocks(
    engine: Engine, tokens: torch.Tensor, document_starts: torch.Tensor | None = None
) -> BlockNats:
    """Return the nats of blocks of text (blocks, length), in total and by position, and counts of tokens.

    Every token but the first is predicted from all tokens before it in its block. With the flat positions
    of `document_starts` only those of its document count, and a document's first token is not scored.
    """
    text = tokens.numpy().astype(np.int64)
    bins = bin_starts(text.shape[1])
    if document_starts is None:
        work, block_of = _blocks(text), np.arange(len(text))
    else:
        work, block_of = _documents(engine, text, document_starts.numpy())
    nats = np.zeros((len(text), len(bins)))
    counts = np.zeros(nats.shape, np.int64)
    if work.lengths and text.shape[1] > 1:
        totals = _run(engine, work._replace(bins=bins))
        np.add.at(nats, block_of, -totals.logprob)
        np.add.at(counts, block_of, totals.tokens)
    return BlockNats(nats.sum(axis=1), counts.sum(axis=1), nats, counts)


def _blocks(text: Ints) -> RowWork:
    """Return a row for each block (blocks, length)."""
    blocks, length = text.shape
    index = np.arange(length - 1)
    return RowWork(
        [length - 1] * blocks,
        lambda block: chain(text[block, :-1], index, text[block, 1:], block),
        blocks,
        lambda block: f"block {block}",
        is_text=True,
    )


def _documents(engine: Engine, text: Ints, starts: Ints) -> tuple[RowWork, Ints]:
    """Return packed rows of the parts of documents in blocks, and the block of each part."""
    begins = np.union1d(np.arange(0, text.size, text.shape[1]), starts)
    parts = np.split(text.ravel(), begins[1:])
    keys = [key_of(part) for part in parts if len(part) > 1]
    block_of = (begins // text.shape[1])[[len(part) > 1 for part in parts]]
    packed = PackedInputs((key[:-4] for key in keys), [key[4:] for key in keys], engine.capacity)
    work = RowWork(packed.lengths, packed.row, len(keys), lambda part: f"block {block_of[part]}")
    return work, block_of


def _run(engine: Engine, work: RowWork) -> Totals:
    """Score all rows, the longest first."""
    engine.ensure_checked(work.lengths, is_text=work.is_text)
    shape = work.sequences, len(work.bins)
    totals = Totals(np.zeros(shape), np.zeros(shape, np.int64), np.ones(work.sequences, np.bool_))
    batches = (
        engine.collate([work.row(i) for i in group], is_text=work.is_text)
        for group in engine.groups(work.lengths, is_text=work.is_text)
    )
    begun: list[tuple[Batch, HostCopy]] = []
    with engine.prepared():
        for batch in batches:
            begun.append((batch, engine.launch(batch)))
            if len(begun) > 1:
                _add(work, totals, *begun.pop(0))
        for batch, pending in begun:
            _add(work, totals, batch, pending)
    return totals


def _add(work: RowWork, totals: Totals, batch: Batch, pending: HostCopy) -> None:
    """Add a pass's scores to their sequences'; name the sequence with NaN or infinity."""
    logprob, is_greedy = (part.numpy() for part in pending.wait())
    place = batch.owner, np.searchsorted(work.bins, batch.position, side="right") - 1
    np.add.at(totals.logprob, place, logprob)
    np.add.at(totals.tokens, place, 1)
    np.logical_and.at(totals.is_greedy, batch.owner, is_greedy)
    # A masked token has weight 0, but 0 times NaN is NaN: one broken token breaks its whole row.
    if len(broken := np.flatnonzero(~np.isfinite(logprob))):
        raise NonFiniteError(
            f"{work.name(int(batch.owner[broken[0]]))}, or what shares its row: the model returns NaN or "
            "infinite values; its weights may be damaged, or too large for the dtype that it runs in (try "
            "scoring.dtype: float32)"
        )
