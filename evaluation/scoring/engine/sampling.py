"""Choose the next token: the likeliest, or one drawn from a filtered distribution.

Each sample has its own random stream: Philox, keyed by seed, prompt, index of the sample and settings;
its counter counts tokens. So a draw depends neither on other rows nor on the number of samples.

Rounding differs between batch shapes, by about 1e-5 in a logit, and should not change a draw.
Inverse-CDF sampling, which compares one number with a running sum over the vocabulary, changes about
once in a thousand tokens: many of the sum's thousands of steps are hardly wider than its error. So the
vocabulary is halved again and again: a random number for each halving chooses one half by its share of
the probability. A draw changes only if a number is within a share's rounding error of that share.

Letters: B rows, V vocabulary.
"""

import hashlib
import json
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from evaluation.scoring.answers import GenerationRequest
from evaluation.settings.generation import Sampling

SORTED = 128  # likeliest tokens that are sorted first; all are sorted if these are too few


class Stream:
    """The random numbers of one sample, `width` for each token, keyed by the prompt and its settings."""

    def __init__(self, request: GenerationRequest, sample: int, width: int) -> None:
        rules = request.sampling
        key = [rules.seed, rules.temperature, rules.top_k, rules.top_p, sample, [*request.tokens]]
        digest = hashlib.blake2b(json.dumps(key).encode(), digest_size=16).digest()
        self._bits = np.random.Philox(key=int.from_bytes(digest, "little"))
        self._width = width

    def next(self) -> NDArray[np.float64]:
        """Return the random numbers (width,) in [0, 1) for the next token."""
        raw = self._bits.random_raw(self._width)
        numbers: NDArray[np.float64] = (raw >> 11).astype(np.float64) * 2.0**-53
        return numbers


def stream_width(vocabulary: int) -> int:
    """Return how many numbers a draw takes: one for each halving of the vocabulary, and at least one."""
    return max(1, (vocabulary - 1).bit_length())


class Rules(NamedTuple):
    """The sampling settings of each row."""

    temperature: torch.Tensor  # (B,) float64; 0: greedy
    top_k: torch.Tensor  # (B,) int64; 0: all
    top_p: torch.Tensor  # (B,) float64
    highest_k: int  # 0 if no row has a top_k
    any_top_p: bool

    @classmethod
    def of(cls, sampling: list[Sampling], device: torch.device) -> "Rules":
        """Return a table of rows' settings on the device on which tokens are chosen."""
        table = torch.tensor(
            [[row.temperature, row.top_k, row.top_p] for row in sampling], dtype=torch.float64
        )
        heat, top_k, top_p = table.to(device).unbind(1)
        highest_k = max(row.top_k for row in sampling)
        return cls(heat, top_k.long(), top_p, highest_k, any(row.top_p < 1 for row in sampling))


def filtered(logits: torch.Tensor, rules: Rules) -> torch.Tensor:
    """Return probabilities (B, V) after temperature, top_k and top_p, after which they do not sum to 1.

    As in transformers, tokens that tie with the last one that is kept are kept, too.
    """
    heat = torch.where(rules.temperature > 0, rules.temperature, 1.0)
    logits = logits / heat[:, None].to(logits.dtype)
    if rules.highest_k:
        top = _largest(logits, rules.highest_k)  # (B, K)
        lowest = top.gather(1, (rules.top_k - 1).clamp(0, top.shape[-1] - 1)[:, None])
        lowest = torch.where(rules.top_k[:, None] > 0, lowest, -torch.inf)
        logits = logits.masked_fill_(logits < lowest, -torch.inf)
    shares = logits.softmax(dim=-1)
    return _nucleus(shares, rules.top_p[:, None]) if rules.any_top_p else shares


def _nucleus(shares: torch.Tensor, top_p: torch.Tensor) -> torch.Tensor:
    """Keep a token if the likelier ones together have less than top_p; set all others to 0.

    On a GPU all tokens are sorted: to check whether a few suffice, the CPU would have to wait for it.
    """
    vocabulary = shares.shape[-1]
    lowest, is_enough = _lowest_kept(shares, top_p, vocabulary if shares.is_cuda else SORTED)
    if not shares.is_cuda:
        more = (~is_enough & (top_p < 1))[:, 0].nonzero()[:, 0]
        if len(more):
            lowest[more] = _lowest_kept(shares[more], top_p[more], vocabulary)[0]
    return shares.masked_fill_(shares < torch.where(top_p < 1, lowest, 0.0), 0.0)


def _lowest_kept(
    shares: torch.Tensor, top_p: torch.Tensor, count: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the smallest share that is kept, (B, 1), and whether `count` sorted shares suffice for it."""
    top = _largest(shares, count)
    before = top.cumsum(dim=-1, dtype=torch.float64) - top
    kept = (before < top_p).sum(dim=-1, keepdim=True)  # at least 1
    return top.gather(1, kept - 1), before[:, -1:] >= top_p


def _largest(values: torch.Tensor, count: int) -> torch.Tensor:
    """Return the largest values of each row, descending, (B, count); numpy sorts faster on the CPU."""
    if count < values.shape[-1] or values.is_cuda:
        return values.topk(min(count, values.shape[-1])).values
    return torch.from_numpy(np.sort(values.numpy())).flip(-1)


def draw(shares: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
    """Draw an id for each row from shares (B, V), up to a factor, by random numbers (B, width) in [0, 1)."""
    sums = torch.nn.functional.pad(shares.cumsum(dim=-1, dtype=torch.float64), (1, 0))
    first = torch.zeros_like(sums[:, :1], dtype=torch.long)
    below, above = torch.zeros_like(sums[:, :1]), sums[:, -1:]
    levels = numbers.shape[1]
    for level in range(levels):
        number, half = numbers[:, level : level + 1], first + (1 << (levels - 1 - level))
        middle = sums.gather(1, half.clamp(max=shares.shape[1]))
        upper = (number * (above - below) >= middle - below) & (middle < above)
        first = torch.where(upper, half, first)
        below, above = torch.where(upper, middle, below), torch.where(upper, above, middle)
    return first[:, 0]


def choose(
    logits: torch.Tensor, rules: Rules | None, streams: Sequence[Stream | None]
) -> torch.Tensor:
    """Return each row's next id from logits (B, V), -1 for NaN or infinity; without rules greedily.

    Greedy rows take the lowest id of those that tie.
    """
    largest, chosen = logits.max(dim=-1)  # NaN counts as larger than any number
    if rules is not None:
        numbers = np.zeros((len(streams), stream_width(logits.shape[1])))
        for row, stream in enumerate(streams):
            if stream is not None:
                numbers[row] = stream.next()
        drawn = draw(filtered(logits, rules), torch.from_numpy(numbers).to(logits.device))
        chosen = torch.where(rules.temperature > 0, drawn, chosen)
    return torch.where(torch.isfinite(largest), chosen, -1)
