"""Log-probabilities of requests, and of blocks of text: both are rows, run and summed alike."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from evaluation.errors import NonFiniteError
from evaluation.scoring.batches import collate, group_rows
from evaluation.scoring.blocks import block_row
from evaluation.scoring.engine import Engine
from evaluation.scoring.rows import Plan, Row, lay_out, plan_requests
from evaluation.scoring.tries import Piece
from evaluation.scoring.window import Request, Score

CPU_BUDGETS = (64, 128, 256, 512, 1024, 2048, 4096)
"""Row lengths tried on CPU: long rows repeat a shared prefix less, but their attention is dense."""


class _Totals(NamedTuple):
    """Per request or block: summed log-probability in nats, and whether all tokens are greedy."""

    logprob: NDArray[np.float64]
    is_greedy: NDArray[np.bool_]


def score_requests(
    engine: Engine, requests: Sequence[Request], *, progress: str | None = None
) -> list[Score]:
    """Scores requests, each with a context and a continuation, in their order.

    `progress` is the label of a progress bar on stderr; None shows none.

    Raises:
        NonFiniteError: names the request for which the model gives NaN or infinity.
        ScoringError: a token without an embedding, or too little GPU memory.
    """
    if not requests:
        return []
    plan = plan_requests(requests)
    pieces = choose_pieces(engine, plan)
    totals = _score_rows(
        engine,
        [piece.size for piece in pieces],
        lambda index: lay_out(plan, pieces[index]),
        [request.name for request in requests],
        progress,
    )
    return [Score(float(nats), bool(greedy)) for nats, greedy in zip(*totals, strict=True)]


def score_blocks(
    engine: Engine,
    tokens: torch.Tensor,
    document_starts: torch.Tensor | None = None,
    *,
    progress: str | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Negative log-likelihood of every block, in nats, and how many of its tokens are scored.

    Every token but the first is predicted from all before it in its block. With `document_starts`
    (flat positions), from those of its document only, and a document's first token is not scored.

    Args:
        tokens: (blocks, length), any integer type.
    """
    blocks, length = tokens.shape
    begins = np.zeros((blocks, length), dtype=np.bool_)
    begins[:, 0] = True
    if document_starts is not None:
        begins.reshape(-1)[document_starts.numpy()] = True
    scored = length - begins.sum(axis=1)
    kept = np.flatnonzero(scored)
    totals = _score_rows(
        engine,
        [length] * len(kept),
        lambda index: block_row(tokens[kept[index]].numpy(), begins[kept[index]], int(kept[index])),
        [f"block {block}" for block in range(blocks)],
        progress,
    )
    return -totals.logprob, scored


def choose_pieces(engine: Engine, plan: Plan) -> list[Piece]:
    """Cuts a trie into rows: as long as allowed on a GPU, as is cheapest on CPU."""
    if engine.on_gpu:
        return plan.pack(engine.row_tokens)
    budgets = {min(budget, engine.row_tokens) for budget in CPU_BUDGETS}
    return min((plan.pack(budget) for budget in sorted(budgets)), key=lambda p: _cost(engine, p))


def _cost(engine: Engine, pieces: list[Piece]) -> float:
    lengths = [piece.size for piece in pieces]
    groups = group_rows(lengths, engine.row_tokens)
    return sum(len(group) * engine.row_cost(lengths[group[0]]) for group in groups)


def _score_rows(
    engine: Engine,
    lengths: Sequence[int],
    row: Callable[[int], Row],
    names: Sequence[str],
    progress: str | None,
) -> _Totals:
    """Runs rows, made when their turn comes, and sums what each of their owners asked for."""
    totals = _Totals(np.zeros(len(names)), np.ones(len(names), dtype=np.bool_))
    groups = group_rows([engine.pad_length(length) for length in lengths], engine.row_tokens)
    batches = (
        collate([row(i) for i in group], engine.pad_length(max(lengths[i] for i in group)))
        for group in groups
    )
    for batch in engine.progress(batches, sum(lengths), progress):
        scores = engine.score(batch)
        starts = np.cumsum(batch.counts) - batch.counts
        totals.logprob[batch.owners] = np.add.reduceat(scores.logprob, starts)
        totals.is_greedy[batch.owners] = np.logical_and.reduceat(scores.is_greedy, starts)
        broken = batch.owners[~np.isfinite(totals.logprob[batch.owners])]
        if len(broken):
            raise NonFiniteError(
                f"{names[broken[0]]}: the model gives NaN or infinite values; its weights may be "
                "damaged, or too large for the type it runs in (try scoring.dtype: float32)"
            )
    return totals
