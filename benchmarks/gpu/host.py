"""What the host prepares by itself: requests laid out as rows and collated, tokens a second.

No device is needed: rows are those that a GPU would be given, a full pass each. A GPU waits where
this is less than it computes, unless both happen at once.
"""

import time
from collections.abc import Sequence

import numpy as np

from evaluation.scoring.engine.batches import collate
from evaluation.scoring.engine.masks import BLOCK
from evaluation.scoring.engine.packed_rows import lay_out, plan_requests
from evaluation.scoring.engine.tries import pack
from evaluation.scoring.engine.window import Request


def figures(requests: Sequence[Request], row_tokens: int) -> dict[str, float]:
    """Seconds of one core before the first pass and in all; tokens in rows, and passes.

    Of two turns the faster one.
    """
    turns = [_lay_out_all(requests, row_tokens) for _ in range(2)]
    return min(turns, key=lambda one: one["seconds"])


def _lay_out_all(requests: Sequence[Request], row_tokens: int) -> dict[str, float]:
    """As `score_requests` does on a GPU, without its passes."""
    start = time.thread_time()
    plan = plan_requests(requests)
    pieces = pack(plan.trie, lambda shared: np.maximum(row_tokens, shared + BLOCK))
    ends = []
    for piece in sorted(pieces, key=lambda piece: -piece.size):
        longest = max(piece.size, row_tokens)
        collate([lay_out(plan, piece)], -(-longest // BLOCK) * BLOCK)
        ends.append(time.thread_time() - start)
    tokens = sum(piece.size for piece in pieces)
    return {
        "first_seconds": ends[0],
        "seconds": ends[-1],
        "tokens": tokens,
        "passes": len(pieces),
        "tokens_per_second": tokens / ends[-1],
    }
