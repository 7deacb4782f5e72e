"""Log-probabilities from hidden states, a chunk of queries at a time.

Logits are float32, also from bfloat16 weights: the matrix product gives them so, for rounding
logits to bfloat16 costs 0.03 nat a token. Only one chunk of them exists at any time. Compiled, all
that a chunk is asked is one kernel that reads it once and one that gathers.

Letters: Q queries, P pairs, V vocabulary, D width.
"""

from typing import NamedTuple

import numpy as np
import torch

from evaluation.scoring.engine.compiled import Compiler, compiled

CHUNK_LOGITS = {"cpu": 1 << 24, "cuda": 1 << 28}
"""Logits of one chunk: 64 MB on CPU, where they should stay near the cache, 1 GB on a GPU."""


class Scored(NamedTuple):
    """For each pair its log-probability in nats (float32) and whether it is the most likely."""

    logprob: torch.Tensor  # (P,)
    is_greedy: torch.Tensor  # (P,) bool


class Head:
    """A model's output layer.

    Among equally likely tokens the one with the lowest id counts as the most likely.
    """

    def __init__(self, layer: torch.nn.Linear, compiler: Compiler | None = None) -> None:
        self._compiler = compiler
        weight, bias = layer.weight, layer.bias
        self.device, self.on_gpu = weight.device, weight.is_cuda
        # On CPU no product gives float32 from a narrower type: keep the weight as float32.
        self.weight = weight if self.on_gpu else weight.float()
        self.bias = None if bias is None else bias.float()
        self.rows = max(1, CHUNK_LOGITS[weight.device.type] // weight.shape[0])

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """(Q, D) to (Q, V) float32, on the head's device."""
        hidden = hidden.to(self.device)
        if self.on_gpu and hidden.dtype != torch.float32:
            logits = torch.mm(hidden, self.weight.T, out_dtype=torch.float32)
        else:
            logits = torch.mm(hidden.float(), self.weight.T)
        return logits if self.bias is None else logits.add_(self.bias)

    def score(
        self, hidden: torch.Tensor, pair_query: torch.Tensor, pair_token: torch.Tensor
    ) -> Scored:
        """Scores pairs, in ascending order of `pair_query`, over hidden states (Q, D).

        Pairs are given on the host, which knows where chunks begin and does not wait to ask.
        """
        starts = np.arange(0, len(hidden), self.rows)
        stops = np.searchsorted(pair_query.numpy(), starts + self.rows)
        pair_query = pair_query.to(self.device, non_blocking=True)
        pair_token = pair_token.to(self.device, non_blocking=True)
        chunks = []
        begin = 0
        for start, stop in zip(map(int, starts), map(int, stops), strict=True):
            logits = self.logits(hidden[start : start + self.rows])
            query, token = pair_query[begin:stop] - start, pair_token[begin:stop]
            chunks.append(self._score_chunk(logits, query, token))
            begin = stop
        return Scored(*map(torch.cat, zip(*chunks, strict=True)))

    def _score_chunk(
        self, logits: torch.Tensor, query: torch.Tensor, token: torch.Tensor
    ) -> Scored:
        if self._compiler is None:
            return _score_in_place(logits, query, token)
        pairs = len(query)
        logits, query, token = (_many(part) for part in (logits, query, token))
        logprob, is_greedy = compiled(_score, self._compiler)(logits, query, token)
        return Scored(logprob[:pairs], is_greedy[:pairs])


def _many(part: torch.Tensor) -> torch.Tensor:
    """Of any number of rows, for the compiler; it takes a single one for another kind of tensor."""
    if len(part) == 1:
        part = torch.cat([part, part])
    torch._dynamo.maybe_mark_dynamic(part, 0)
    return part


def _score(
    logits: torch.Tensor, query: torch.Tensor, token: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """What follows from logits (q, V), without writing any: one reduction, then a gather."""
    top, likeliest = logits.max(dim=-1)
    log_total = top + (logits - top[:, None]).exp().sum(dim=-1).log()
    return logits[query, token] - log_total[query], likeliest[query] == token


def _score_in_place(logits: torch.Tensor, query: torch.Tensor, token: torch.Tensor) -> Scored:
    """Overwrites the logits (q, V), to need no second tensor of their size."""
    asked = logits[query, token]
    top, likeliest = logits.max(dim=-1)
    log_total = top + logits.sub_(top[:, None]).exp_().sum(dim=-1).log_()
    return Scored(asked - log_total[query], likeliest[query] == token)
