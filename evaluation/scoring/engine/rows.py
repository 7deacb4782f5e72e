"""Score packed rows: one way from requests and texts to log-probabilities.

The scores of a pass are fetched after the next has begun, so that a GPU works while rows are packed. Sums
are float64. Scoring raises NonFiniteError if the model returns NaN or infinity, and ScoringError if it
cannot be run; both name the item.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from evaluation.errors import NonFiniteError
from evaluation.metrics.positions import bin_starts
from evaluation.scoring.engine.check import ensure_scorable
from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.engine.gpu import fetch
from evaluation.scoring.engine.packing import Batch, Ints, PackedRows, key_of
from evaluation.scoring.window import Request

Floats = NDArray[np.float64]


class Score(NamedTuple):
    """Log-probability of a continuation in nats, and whether greedy decoding would produce it."""

    logprob: float
    is_greedy: bool


def score_requests(engine: Engine, requests: Sequence[Request]) -> list[Score]:
    """Score requests that fit the context window."""
    read = cache(key_of)  # candidates of a question share its context, which may have many tokens
    sequences = [
        (read(one.context) + key_of(one.continuation[:-1]), key_of(one.continuation))
        for one in requests
    ]
    logprobs, is_greedy = np.zeros(len(requests)), np.ones(len(requests), np.bool_)
    rows = PackedRows(sequences, engine.capacity)
    for batch, (logprob, greedy) in _scored(engine, rows, lambda n: requests[n].name):
        np.add.at(logprobs, batch.owner, logprob)
        np.logical_and.at(is_greedy, batch.owner, greedy > 0)
    return [Score(*pair) for pair in zip(logprobs.tolist(), is_greedy.tolist(), strict=True)]


def score_blocks(
    engine: Engine, tokens: torch.Tensor, document_starts: torch.Tensor | None = None
) -> tuple[Floats, Ints]:
    """Return the nats of blocks of text (blocks, length) by `metrics.positions`' bins, and counts of tokens.

    Both are (blocks, bins). Every token but the first is predicted from all tokens before it in its block.
    With the flat positions of `document_starts` only those of its document count, and a document's first
    token is not scored.
    """
    text = tokens.numpy().astype(np.int64)
    begins = np.arange(0, text.size, text.shape[1])
    if document_starts is not None:
        begins = np.union1d(begins, document_starts.numpy())
    is_scored = np.diff(begins, append=text.size) > 1
    block_of = (begins // text.shape[1])[is_scored]
    parts = np.split(text.ravel(), begins[1:])
    keys = [key_of(part) for part, is_one in zip(parts, is_scored, strict=True) if is_one]
    rows = PackedRows([(key[:-4], key[4:]) for key in keys], engine.capacity)
    bins = bin_starts(text.shape[1])
    nats, counts = np.zeros((len(text), len(bins))), np.zeros((len(text), len(bins)), np.int64)
    for batch, (logprob, _) in _scored(engine, rows, lambda n: f"block {block_of[n]}"):
        place = block_of[batch.owner], np.searchsorted(bins, batch.position, side="right") - 1
        np.add.at(nats, place, -logprob)
        np.add.at(counts, place, 1)
    return nats, counts


def _scored(
    engine: Engine, rows: PackedRows, name: Callable[[int], str]
) -> Iterator[tuple[Batch, Floats]]:
    """Yield each batch with (2, P) log-probabilities, and 1 where a token is the likeliest."""
    if not rows.lengths:
        return
    ensure_scorable(engine, rows)

    def begun() -> Iterator[tuple[Batch, Callable[[], Floats]]]:
        for batch in engine.batches(rows):
            logprob, is_greedy = engine.score(batch)
            yield batch, fetch(torch.stack([logprob.double(), is_greedy.double()]))

    with engine.prepared():
        ahead: Iterator[Any] = chain(begun(), [None])
        for (batch, values), _ in pairwise(ahead):
            scores = values()
            # A masked token has weight 0, but 0 times NaN is NaN: one broken token breaks its whole row.
            if len(broken := np.flatnonzero(~np.isfinite(scores[0]))):
                raise NonFiniteError(
                    f"{name(int(batch.owner[broken[0]]))}, or what shares its row: the model returns NaN "
                    "or infinite values; its weights may be damaged, or too large for the dtype that it "
                    "runs in (try scoring.dtype: float32)"
                )
            yield batch, scores
