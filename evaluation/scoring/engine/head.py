"""Compute log-probabilities from hidden states, a chunk of queries at a time, and copy them to the host.

Logits are float32, also from bfloat16 weights: the matrix product outputs float32, since rounding
logits to bfloat16 costs 0.03 nat a token. Only one chunk of logits exists at any time. Compiled
scoring of a chunk is one kernel that reads the logits once, and one that gathers.

Letters: Q queries, P pairs, V vocabulary, D width.
"""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from evaluation.scoring.engine.compiled import Compiler, compiled

CHUNK_LOGITS = {"cpu": 1 << 24, "cuda": 1 << 28}
"""Logits of one chunk: 64 MB on CPU, for the cache's sake, and 1 GB on a GPU."""

MANY_ROWS = 512
"""Rows of logits for which scoring is compiled; a kernel compiled for few rows would read them twice."""


class DeviceScores(NamedTuple):
    """Log-probability of each pair in nats (float32), and whether its token is the most likely."""

    logprob: torch.Tensor  # (P,)
    is_greedy: torch.Tensor  # (P,) bool


class PairScores(NamedTuple):
    """The same on the host."""

    logprob: NDArray[np.float64]
    is_greedy: NDArray[np.bool_]


class HostCopy:
    """Tensors of one device on their way to the host."""

    def __init__(self, *tensors: torch.Tensor) -> None:
        self._copies = [_begun(tensor) for tensor in tensors]
        self._done = torch.cuda.Event() if tensors[0].is_cuda else None  # type: ignore[no-untyped-call]
        if self._done is not None:
            self._done.record(torch.cuda.current_stream(tensors[0].device))

    def wait(self) -> list[torch.Tensor]:
        """Return the copies once they are complete."""
        if self._done is not None:
            self._done.synchronize()
        return self._copies


def _begun(tensor: torch.Tensor) -> torch.Tensor:
    """Begin to copy to the host, in the stream of a GPU; a tensor that is there stays."""
    if not tensor.is_cuda:
        return tensor
    return torch.empty_like(tensor, device="cpu", pin_memory=True).copy_(tensor, non_blocking=True)


class Pending:
    """The scores of a pass, while they are being copied to the host.

    Args:
        order: Index of each pair in the order of the batch's rows, (P,).
    """

    def __init__(self, scored: DeviceScores, order: NDArray[np.int64]) -> None:
        self._order = order
        self._copy = HostCopy(scored.logprob.double(), scored.is_greedy)

    def scores(self) -> PairScores:
        """Wait until the scores are on the host; return them in the order of the batch's rows."""
        ordered = []
        for copy in self._copy.wait():
            values = np.empty_like(copy.numpy())
            values[self._order] = copy.numpy()
            ordered.append(values)
        return PairScores(*ordered)


def gives_float32(part: torch.Tensor) -> bool:
    """Return whether a product of a narrow dtype can output float32: on CUDA, not on a CPU."""
    return part.is_cuda and part.dtype != torch.float32


class Head:
    """A model's output layer.

    Among equally likely tokens the one with the lowest id counts as the most likely.

    Args:
        layer: The model's own output layer, (V, D), with or without bias.
    """

    def __init__(self, layer: torch.nn.Linear, compiler: Compiler | None = None) -> None:
        self._compiler = compiler
        weight, bias = layer.weight, layer.bias
        self.device = weight.device
        self.weight = weight if gives_float32(weight) else weight.float()
        self.bias = None if bias is None else bias.float()
        self.rows = max(1, CHUNK_LOGITS[weight.device.type] // weight.shape[0])
        self._is_warm = False

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return the logits (Q, V) of hidden states (Q, D) in float32, on the head's device."""
        if gives_float32(hidden):
            logits = torch.mm(hidden, self.weight.T, out_dtype=torch.float32)
        else:
            logits = torch.mm(hidden.float(), self.weight.T)
        return logits if self.bias is None else logits.add_(self.bias)

    def score(
        self, hidden: torch.Tensor, pair_query: torch.Tensor, pair_token: torch.Tensor
    ) -> DeviceScores:
        """Score pairs of a query and a token, a chunk of queries at a time.

        Pairs are on the host, so that it finds the chunks' bounds without waiting for the GPU.

        Args:
            hidden: Last hidden states, (Q, D).
            pair_query: Index into `hidden` of each pair, ascending, (P,).
            pair_token: Token id of each pair, (P,).
        """
        starts = np.arange(0, len(hidden), self.rows)
        stops = np.searchsorted(pair_query.numpy(), starts + self.rows)
        pair_query = pair_query.to(self.device, non_blocking=True)
        pair_token = pair_token.to(self.device, non_blocking=True)
        chunks = []
        begin = 0
        for start, stop in zip(map(int, starts), map(int, stops), strict=True):
            query, token = pair_query[begin:stop] - start, pair_token[begin:stop]
            logits = self.logits(hidden[start : start + self.rows])
            chunks.append(self._score_chunk(logits, query, token))
            del logits  # before the next chunk's are computed
            begin = stop
        return DeviceScores(*map(torch.cat, zip(*chunks, strict=True)))

    def _score_chunk(
        self, logits: torch.Tensor, query: torch.Tensor, token: torch.Tensor
    ) -> DeviceScores:
        if self._compiler is None:
            return _score_in_place(logits, query, token)
        score, pairs = compiled(_score, self._compiler), len(query)
        token = token.clone()  # an inference tensor like the others; otherwise it compiles twice
        if not self._is_warm:
            many = logits.new_zeros(MANY_ROWS, logits.shape[1])
            # Of another length than the logits: the compiler would specialize on equal lengths, and on 1.
            score(*map(_many, (many, *(query.new_zeros(MANY_ROWS + 1) for _ in range(2)))))
            self._is_warm = True
        return DeviceScores(*(part[:pairs] for part in score(*map(_many, (logits, query, token)))))


def _many(part: torch.Tensor) -> torch.Tensor:
    """Mark a tensor's number of rows as dynamic; the compiler would specialize on a single row."""
    if len(part) == 1:
        part = torch.cat([part, part])
    torch._dynamo.maybe_mark_dynamic(part, 0)
    return part


def _score(
    logits: torch.Tensor, query: torch.Tensor, token: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Score pairs from logits (q, V), without a second tensor of their size: a reduction, then a gather."""
    top, likeliest = logits.max(dim=-1)
    log_total = (top + (logits - top[:, None]).exp().sum(dim=-1).log())[query]
    return logits[query, token] - log_total, likeliest[query] == token


def _score_in_place(logits: torch.Tensor, query: torch.Tensor, token: torch.Tensor) -> DeviceScores:
    """Score pairs and overwrite the logits (q, V), to need no second tensor of their size."""
    chosen = logits[query, token]
    top, likeliest = logits.max(dim=-1)
    log_total = (top + logits.sub_(top[:, None]).exp_().sum(dim=-1).log_())[query]
    return DeviceScores(chosen - log_total, likeliest[query] == token)
