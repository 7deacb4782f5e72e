"""Choose the next token: the likeliest, or one drawn from a filtered distribution.

Each sample has its own random stream: Philox, keyed by seed, prompt, index of the sample and settings.
So a draw depends neither on other rows nor on the number of samples.

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

import numpy as np
import torch

from evaluation.scoring.answers import GenerationRequest
from evaluation.settings.generation import Sampling


def stream_of(request: GenerationRequest) -> np.random.Generator:
    """Return the random numbers of a sample."""
    rules = request.sampling
    about = [rules.seed, rules.temperature, rules.top_k, rules.top_p, request.sample]
    digest = hashlib.blake2b(json.dumps([*about, request.tokens]).encode(), digest_size=16).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(digest, "little")))


def choose(
    logits: torch.Tensor, sampling: Sampling, streams: Sequence[np.random.Generator]
) -> torch.Tensor:
    """Return each row's next id from logits (B, V), -1 for NaN or infinity; the lowest id of a greedy tie."""
    largest, chosen = logits.max(dim=-1)  # NaN counts as larger than any number
    if sampling.temperature:
        halvings = max(1, (logits.shape[1] - 1).bit_length())
        numbers = torch.from_numpy(np.stack([stream.random(halvings) for stream in streams]))
        chosen = draw(filtered(logits, sampling), numbers.to(logits.device))
    return torch.where(torch.isfinite(largest), chosen, -1)


def filtered(logits: torch.Tensor, sampling: Sampling) -> torch.Tensor:
    """Return probabilities (B, V) after temperature, top_k and top_p, after which they do not sum to 1.

    As in transformers, tokens that tie with the last one that is kept are kept, too.
    """
    logits = logits / sampling.temperature
    if sampling.top_k:
        top = logits.topk(min(sampling.top_k, logits.shape[1])).values
        logits.masked_fill_(logits < top[:, -1:], -torch.inf)
    shares = logits.softmax(dim=-1)
    if sampling.top_p < 1:
        ordered = _ascending(shares)
        upto = ordered.cumsum(dim=-1, dtype=torch.float64)
        left_out = (upto[:, :-1] <= upto[:, -1:] - sampling.top_p).sum(dim=-1, keepdim=True)
        shares.masked_fill_(shares < ordered.gather(1, left_out), 0.0)
    return shares


def _ascending(values: torch.Tensor) -> torch.Tensor:
    if values.is_cuda:
        return values.sort().values
    return torch.from_numpy(np.sort(values.numpy()))  # in a twentieth of torch's time


def draw(shares: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
    """Draw an id for each row from shares (B, V), up to a factor, by a number in [0, 1) for each halving."""
    sums = shares.new_zeros(len(shares), shares.shape[1] + 1, dtype=torch.float64)
    torch.cumsum(shares, dim=-1, dtype=torch.float64, out=sums[:, 1:])
    first = torch.zeros_like(sums[:, :1], dtype=torch.long)
    below, above = torch.zeros_like(sums[:, :1]), sums[:, -1:]
    for level, number in enumerate(numbers.T[:, :, None], start=1):
        half = first + (1 << (len(numbers.T) - level))
        middle = sums.gather(1, half.clamp(max=shares.shape[1]))
        upper = (number * (above - below) >= middle - below) & (middle < above)
        first = torch.where(upper, half, first)
        below, above = torch.where(upper, middle, below), torch.where(upper, above, middle)
    return first[:, 0]
