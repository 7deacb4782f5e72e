"""Scores that a GPU may still be at."""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from evaluation.scoring.engine.head import Scored


class PairScores(NamedTuple):
    """For each pair its log-probability in nats, and whether its token is the most likely."""

    logprob: NDArray[np.float64]
    is_greedy: NDArray[np.bool_]


class Pending:
    """The scores of a pass: on their way to the host, or there."""

    def __init__(self, scored: Scored, order: NDArray[np.int64]) -> None:
        """`order[p]` says where the p-th pair stood in the batch's rows."""
        self._order = order
        self._logprob = _to_host(scored.logprob.double())
        self._is_greedy = _to_host(scored.is_greedy)
        self._done = _event() if scored.logprob.is_cuda else None
        if self._done is not None:
            self._done.record(torch.cuda.current_stream(scored.logprob.device))

    def scores(self) -> PairScores:
        """In the order of the batch's rows; waits until they are there."""
        if self._done is not None:
            self._done.synchronize()
        logprob = np.empty(len(self._order))
        is_greedy = np.empty(len(self._order), dtype=np.bool_)
        logprob[self._order] = self._logprob.numpy()
        is_greedy[self._order] = self._is_greedy.numpy()
        return PairScores(logprob, is_greedy)


def _event() -> torch.cuda.Event:
    return torch.cuda.Event()  # type: ignore[no-untyped-call]


def _to_host(values: torch.Tensor) -> torch.Tensor:
    """On a GPU a copy that is there when the stream has come so far."""
    if not values.is_cuda:
        return values
    return torch.empty_like(values, device="cpu", pin_memory=True).copy_(values, non_blocking=True)
