"""What the host prepares by itself: requests laid out as rows and collated, tokens a second.

No device is needed: rows are those that a GPU would be given, a full pass each. A GPU waits where
this is less than it computes, unless both happen at once.
"""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from evaluation.scoring.engine.batches import collate
from evaluation.scoring.engine.masks import BLOCK
from evaluation.scoring.engine.packed_rows import lay_out, plan_requests
from evaluation.scoring.engine.tries import pack
from evaluation.scoring.engine.window import Request


@dataclass(frozen=True)
class Laid:
    """Seconds of one core before the first pass and in all; tokens in rows, and passes."""

    first_seconds: float
    seconds: float
    tokens: int
    passes: int

    @property
    def tokens_per_second(self) -> float:
        return self.tokens / self.seconds


def lay_out_all(requests: Sequence[Request], row_tokens: int) -> Laid:
    """As `score_requests` does on a GPU, without its passes."""
    start = time.thread_time()
    plan = plan_requests(requests)
    pieces = pack(plan.trie, lambda shared: np.maximum(row_tokens, shared + BLOCK))
    first = 0.0
    for number, piece in enumerate(sorted(pieces, key=lambda piece: -piece.size)):
        longest = max(piece.size, row_tokens)
        collate([lay_out(plan, piece)], -(-longest // BLOCK) * BLOCK)
        if number == 0:
            first = time.thread_time() - start
    seconds = time.thread_time() - start
    return Laid(first, seconds, sum(piece.size for piece in pieces), len(pieces))


def figures(requests: Sequence[Request], row_tokens: int) -> dict[str, float]:
    """The faster of two turns, for a report."""
    laid = min((lay_out_all(requests, row_tokens) for _ in range(2)), key=lambda one: one.seconds)
    return {**asdict(laid), "tokens_per_second": laid.tokens_per_second}
