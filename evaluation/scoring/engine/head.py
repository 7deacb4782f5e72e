"""Compute log-probabilities from hidden states, a chunk of queries at a time.

Logits are float32, also from bfloat16 weights: rounding them costs 0.03 nat a token.

Letters: Q queries, P pairs of a query and a token, V vocabulary, D width.
"""

from itertools import pairwise
from typing import Any

import numpy as np
import torch
from transformers import PretrainedConfig, PreTrainedModel

from evaluation.errors import ScoringError
from evaluation.scoring.engine.gpu import Compiler, compiled, to_device
from evaluation.scoring.engine.packing import Ints

CHUNK_LOGITS = {"cpu": 1 << 24, "cuda": 1 << 28}
"""Most logits at a time: 64 MB on CPU, for the cache's sake, and 1 GB on a GPU."""


def declared(config: PretrainedConfig, key: str) -> Any:
    """Return a key that the configuration's class declares: Llama accepts any other, and ignores it."""
    return getattr(config, key, None) if hasattr(type(config), key) else None


class Head:
    """A model's output layer, with what its class does to logits, as the configuration says.

    The check compares the result with the class's own logits, so a factor that is unknown here is found.
    """

    def __init__(self, model: PreTrainedModel, compiler: Compiler | None = None) -> None:
        layer = model.get_output_embeddings()
        if not isinstance(layer, torch.nn.Linear):
            raise ScoringError(f"{type(model).__name__} has no linear output layer")
        weight, bias = layer.weight, layer.bias
        # A GPU's products of narrow weights are put out in float32.
        self._is_narrow = weight.is_cuda and weight.dtype != torch.float32
        self._weight = weight if self._is_narrow else weight.float()
        self._bias = None if bias is None else bias.float()
        self._factor = (declared(model.config, "logit_scale") or 1.0) / (
            declared(model.config, "logits_scaling") or 1.0
        )
        self._cap = declared(model.config, "final_logit_softcapping")
        self._totals = (
            compiled(_totals, compiler, is_dynamic=True) if compiler else _totals_in_place
        )
        self.rows = max(1, CHUNK_LOGITS[weight.device.type] // len(weight))
        """Queries of a chunk."""

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return the logits (Q, V) of hidden states (Q, D) in float32."""
        if self._is_narrow:
            logits = torch.mm(hidden, self._weight.T, out_dtype=torch.float32)
        else:
            logits = torch.mm(hidden.float(), self._weight.T)
        if self._bias is not None:
            logits.add_(self._bias)
        if self._factor != 1:
            logits.mul_(self._factor)
        return logits if self._cap is None else logits.div_(self._cap).tanh_().mul_(self._cap)

    def score(
        self, hidden: torch.Tensor, pair: Ints, target: Ints
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the log-probability of each pair (P,), and whether its token is the likeliest.

        `pair`, ascending indices into the hidden states (Q, D), and `target` are on the host, so that
        nothing waits for a GPU to find the chunks' bounds.
        """
        firsts = range(0, len(hidden), self.rows)
        bounds = np.searchsorted(pair, [*firsts, len(hidden)])
        queries, targets = (to_device(part, hidden.device) for part in (pair, target))
        scored = []
        for first, (begin, stop) in zip(firsts, pairwise(bounds), strict=True):
            logits = self.logits(hidden[first : first + self.rows])
            query, token = queries[begin:stop] - first, targets[begin:stop]
            chosen = logits[query, token]
            total, likeliest = self._totals(logits)
            scored.append((chosen - total[query], likeliest[query] == token))
            del logits  # before the next chunk's are computed
        logprob, is_greedy = map(torch.cat, zip(*scored, strict=True))
        return logprob, is_greedy


def _totals(logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the logarithm of the sum of exponentials, and the likeliest token, (Q,) each."""
    top, likeliest = logits.max(dim=-1)
    return top + (logits - top[:, None]).exp().sum(dim=-1).log(), likeliest


def _totals_in_place(logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the same, and overwrite the logits, to need no second tensor of their size."""
    top, likeliest = logits.max(dim=-1)
    return top + logits.sub_(top[:, None]).exp_().sum(dim=-1).log_(), likeliest
