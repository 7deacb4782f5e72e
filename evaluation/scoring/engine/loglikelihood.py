"""Log-probabilities of requests, and of blocks of text: both are rows, run and summed alike."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch

from evaluation.metrics.positions import bin_starts
from evaluation.scoring.engine.batches import PASS_TOKENS, group_rows
from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.engine.packed_rows import PackedRow, block_row, packed_row, plan_requests
from evaluation.scoring.engine.running import Work, run
from evaluation.scoring.engine.tries import Piece, Trie, pack
from evaluation.scoring.engine.window import BlockNats, Request, Score

SHORTEST_ROWS = (96, 128, 192, 256, 384, 512)
"""Lengths tried for rows on CPU that share nothing."""


def score_requests(
    engine: Engine, requests: Sequence[Request], *, progress: str | None = None
) -> list[Score]:
    """Score requests, each with a context and a continuation.

    Args:
        engine: The model.
        requests: Requests that fit the context window.
        progress: Label of a progress bar on stderr; None shows none.

    Returns:
        A score for each request, in their order.

    Raises:
        NonFiniteError: When the model gives NaN or infinity; it names the request.
        ScoringError: When a token has no embedding, or a GPU has too little memory.
    """
    if not requests:
        return []
    plan = plan_requests(requests)
    pieces = _choose_rows(engine, plan.trie)
    work = Work(
        lengths=[piece.size for piece in pieces],
        row=lambda index: packed_row(plan, pieces[index]),
        names=[request.name for request in requests],
        alone=lambda index: _single_row(requests[index]),
        is_text=False,
    )
    totals = run(engine, work, progress)
    found = zip(totals.logprob, totals.is_greedy, strict=True)
    return [Score(float(nats), bool(greedy)) for nats, greedy in found]


def score_blocks(
    engine: Engine,
    tokens: torch.Tensor,
    document_starts: torch.Tensor | None = None,
    *,
    progress: str | None = None,
) -> BlockNats:
    """Return the negative log-likelihood of blocks of text, in all and by position.

    Every token but the first is predicted from all before it in its block. With `document_starts`,
    from those of its document only, and a document's first token is not scored.

    Args:
        engine: The model.
        tokens: Token ids, (blocks, length), any integer type.
        document_starts: Flat positions at which documents begin; None for scores within blocks.
        progress: Label of a progress bar on stderr; None shows none.

    Returns:
        The blocks' nats and their numbers of scored tokens.
    """
    blocks, length = tokens.shape
    begins = np.zeros((blocks, length), dtype=np.bool_)
    begins[:, 0] = True
    if document_starts is not None:
        begins.reshape(-1)[document_starts.numpy()] = True
    scored = length - begins.sum(axis=1)
    kept = np.flatnonzero(scored)

    def row(block: int) -> PackedRow:
        return block_row(tokens[block].numpy(), begins[block], block)

    work = Work(
        lengths=[length] * len(kept),
        row=lambda index: row(int(kept[index])),
        names=[f"block {block}" for block in range(blocks)],
        alone=row,
        is_text=True,
        bins=bin_starts(length),
    )
    totals = run(engine, work, progress)
    by_position = -totals.logprob_by_position, totals.tokens_by_position
    return BlockNats(-totals.logprob, scored, *by_position)


def _choose_rows(engine: Engine, trie: Trie) -> list[Piece]:
    """Cut a trie into rows: full ones of fixed shapes, or as is cheapest under dense masks.

    On CPU inputs that have nothing in common gain nothing from a long row, but few short rows
    leave one half empty; so the shortest length is tried out.
    """
    if engine.is_compiled:
        return pack(trie, engine.row_capacity)
    capacities = (partial(engine.row_capacity, shortest=length) for length in SHORTEST_ROWS)
    return min((pack(trie, capacity) for capacity in capacities), key=partial(_cost, engine))


def _cost(engine: Engine, pieces: list[Piece]) -> float:
    """Return the multiply-adds of rows on CPU, each group one padded forward pass."""
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
