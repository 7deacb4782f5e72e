"""Score packed rows: one way from requests and texts to log-probabilities.

The scores of a pass are fetched after the next has begun, so that a GPU works while rows are packed. Sums
are float64.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch

from evaluation.errors import NonFiniteError
from evaluation.metrics.positions import bin_starts
from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.engine.gpu import HostCopy
from evaluation.scoring.engine.tries import Batch, Ints, PackedInputs, PackedRow, chain, key_of
from evaluation.scoring.engine.window import BlockNats, Request, Score


class RowWork(NamedTuple):
    """Rows, which are made when they are needed, and the name of each sequence for messages."""

    lengths: Sequence[int]
    row: Callable[[int], PackedRow]
    name: Callable[[int], str]
    is_text: bool = False
    """Whether rows are blocks of text of equal length."""


class Totals:
    """Sums over each sequence: log-probability and tokens by bins of positions; whether all are greedy."""

    def __init__(self, sequences: int, bins: Sequence[int] = (0,)) -> None:
        self.bins = bins
        self.logprob = np.zeros((sequences, len(bins)))
        self.tokens = np.zeros((sequences, len(bins)), np.int64)
        self.is_greedy = np.ones(sequences, np.bool_)

    def run(self, engine: Engine, work: RowWork) -> None:
        """Score all rows, the longest first."""
        engine.ensure_checked(work.lengths, is_text=work.is_text)
        begun: list[tuple[Batch, HostCopy]] = []
        with engine.prepared():
            for group in engine.groups(work.lengths, is_text=work.is_text):
                batch = engine.collate([work.row(i) for i in group], is_text=work.is_text)
                begun.append((batch, engine.launch(batch)))
                if len(begun) > 1:
                    self._add(work, *begun.pop(0))
            for batch, pending in begun:
                self._add(work, batch, pending)

    def _add(self, work: RowWork, batch: Batch, pending: HostCopy) -> None:
        logprob, is_greedy = (part.numpy() for part in pending.wait())
        place = batch.owner, np.searchsorted(self.bins, batch.position, side="right") - 1
        np.add.at(self.logprob, place, logprob)
        np.add.at(self.tokens, place, 1)
        np.logical_and.at(self.is_greedy, batch.owner, is_greedy)
        # A masked token has weight 0, but 0 times NaN is NaN: one broken token breaks its whole row.
        if len(broken := np.flatnonzero(~np.isfinite(logprob))):
            raise NonFiniteError(
                f"{work.name(int(batch.owner[broken[0]]))}, or what shares its row: the model returns NaN or "
                "infinite values; its weights may be damaged, or too large for the dtype that it runs in "
                "(try scoring.dtype: float32)"
            )


def score_requests(engine: Engine, requests: Sequence[Request]) -> list[Score]:
    """Score requests that fit the context window; raise NonFiniteError, which names the first broken one."""
    if not requests:
        return []
    # Candidates of a question share its context, which may have many tokens.
    contexts = {id(request.context): request.context for request in requests}
    keys = {name: key_of(context) for name, context in contexts.items()}
    inputs = (keys[id(each.context)] + key_of(each.continuation[:-1]) for each in requests)
    packed = PackedInputs(inputs, [key_of(each.continuation) for each in requests], engine.capacity)
    totals = Totals(len(requests))
    totals.run(engine, RowWork(packed.lengths, packed.row, lambda index: requests[index].name))
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
    blocks, length = text.shape
    begins = np.arange(0, text.size, length)
    if document_starts is not None:
        begins = np.union1d(begins, document_starts.numpy())
    parts = [part for part in np.split(text.ravel(), begins[1:]) if len(part) > 1]
    block_of = (begins // length)[np.diff(begins, append=text.size) > 1]

    def name(part: int) -> str:
        return f"block {block_of[part]}"

    if document_starts is None:
        work = RowWork([length - 1] * len(parts), lambda n: _whole(parts[n], n), name, is_text=True)
    else:
        keys = [key_of(part) for part in parts]
        packed = PackedInputs(
            (key[:-4] for key in keys), [key[4:] for key in keys], engine.capacity
        )
        work = RowWork(packed.lengths, packed.row, name)
    totals = Totals(len(parts), bin_starts(length))
    nats = np.zeros((blocks, len(totals.bins)))
    counts = np.zeros(nats.shape, np.int64)
    if parts:
        totals.run(engine, work)
        np.add.at(nats, block_of, -totals.logprob)
        np.add.at(counts, block_of, totals.tokens)
    return BlockNats(nats.sum(axis=1), counts.sum(axis=1), nats, counts)


def _whole(part: Ints, number: int) -> PackedRow:
    """Return the row of a block of text."""
    return chain(part[:-1], np.arange(len(part) - 1), part[1:], number)
