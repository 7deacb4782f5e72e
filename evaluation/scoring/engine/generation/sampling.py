"""How the next token is chosen: the likeliest, or drawn from a filtered distribution.

A sample has a stream of random numbers of its own: Philox, keyed by the seed, the prompt, the
sample's index and the settings; its counter counts the tokens. So what is drawn depends neither on
the other rows nor on how many samples there are.

Rounding differs between batch shapes, by about 1e-5 in a logit, and must not turn a draw. One
number compared with a running sum over the vocabulary turns about once in a thousand tokens, for
the sum has thousands of steps, each narrower than its error or not much wider. So the vocabulary is
halved again and again: each half is entered with its share of the probability, decided by a number
of its own. That turns where a number is within the rounding error of a share, for the few halvings
that are not certain anyway.

Letters: B rows, V vocabulary.
"""

import hashlib
import json
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from evaluation.scoring.answers import GenerationRequest
from evaluation.settings.generation import Sampling

SORTED = 128  # likeliest tokens that are sorted first; all are, where these are not enough
_BLOCK_LEVELS = 6  # the last halvings are within blocks, the others need no more than their sums


class Stream:
    """The random numbers of one sample.

    Args:
        request: The prompt and its sampling settings, which key the stream.
        sample: Index of the sample.
        width: Numbers for each token.
    """

    def __init__(self, request: GenerationRequest, sample: int, width: int) -> None:
        sampling = request.sampling
        key = [
            sampling.seed,
            sampling.temperature,
            sampling.top_k,
            sampling.top_p,
            sample,
            list(request.tokens),
        ]
        digest = hashlib.blake2b(json.dumps(key).encode(), digest_size=16).digest()
        self._bits = np.random.Philox(key=int.from_bytes(digest, "little"))
        self._width = width

    def next(self) -> NDArray[np.float64]:
        """Return the random numbers for the next token.

        Returns:
            Numbers in [0, 1), (width,).
        """
        raw = self._bits.random_raw(self._width)
        numbers: NDArray[np.float64] = (raw >> 11).astype(np.float64) * 2.0**-53
        return numbers


def stream_width(vocabulary: int) -> int:
    """Return how many numbers one draw takes: as often can the vocabulary be halved.

    Args:
        vocabulary: Ids that can be chosen.

    Returns:
        At least 1.
    """
    return max(1, (vocabulary - 1).bit_length())


class Rules(NamedTuple):
    """How each row's token is chosen."""

    temperature: torch.Tensor  # (B,) float64; 0: the likeliest
    top_k: torch.Tensor  # (B,) int64; 0: all
    top_p: torch.Tensor  # (B,) float64
    highest_k: int  # 0 where no row has a top_k
    any_top_p: bool

    @classmethod
    def of(cls, sampling: list[Sampling], device: torch.device) -> "Rules":
        """Return a table of rows' settings.

        Args:
            sampling: Settings of each row.
            device: Where tokens are chosen.

        Returns:
            The table, on that device.
        """
        table = torch.tensor(
            [[one.temperature, one.top_k, one.top_p] for one in sampling], dtype=torch.float64
        ).to(device)
        return cls(
            table[:, 0],
            table[:, 1].long(),
            table[:, 2],
            max(one.top_k for one in sampling),
            any(one.top_p < 1 for one in sampling),
        )


def filtered(logits: torch.Tensor, rules: Rules) -> torch.Tensor:
    """Return probabilities by temperature, then top_k, then top_p.

    As in transformers: tokens that tie with the last one kept are kept too.

    Args:
        logits: Logits, (B, V).
        rules: How each row's token is chosen.

    Returns:
        Probabilities, (B, V); they do not sum to 1 after top_p.
    """
    heat = torch.where(rules.temperature > 0, rules.temperature, 1.0)
    logits = logits / heat[:, None].to(logits.dtype)
    if rules.highest_k:
        logits = _likeliest(logits, rules)
    shares = logits.softmax(dim=-1)
    return _nucleus(shares, rules) if rules.any_top_p else shares


def _likeliest(logits: torch.Tensor, rules: Rules) -> torch.Tensor:
    """Overwrite the logits of tokens that are not among a row's top_k."""
    top = _largest(logits, rules.highest_k)  # (B, K)
    place = (rules.top_k - 1).clamp(0, top.shape[-1] - 1)
    lowest = top.gather(1, place[:, None])  # (B, 1)
    lowest = torch.where(rules.top_k[:, None] > 0, lowest, -torch.inf)
    return logits.masked_fill_(logits < lowest, -torch.inf)


def _nucleus(shares: torch.Tensor, rules: Rules) -> torch.Tensor:
    """Keep a token while those that are likelier have less than top_p together.

    On a GPU all are sorted, as looking whether a few are enough would mean to wait for it.
    """
    vocabulary, top_p = shares.shape[-1], rules.top_p[:, None]
    lowest, is_enough = _lowest_kept(shares, top_p, vocabulary if shares.is_cuda else SORTED)
    if not shares.is_cuda:
        more = (~is_enough & (top_p < 1))[:, 0].nonzero()[:, 0]
        if len(more):
            lowest[more] = _lowest_kept(shares[more], top_p[more], vocabulary)[0]
    return shares.masked_fill_(shares < torch.where(top_p < 1, lowest, 0.0), 0.0)


def _lowest_kept(
    shares: torch.Tensor, top_p: torch.Tensor, count: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the smallest share that is kept, (B, 1), and whether so many sorted ones are enough to tell."""
    top = _largest(shares, count)
    before = top.cumsum(dim=-1, dtype=torch.float64) - top
    kept = (before < top_p).sum(dim=-1, keepdim=True)  # at least 1
    return top.gather(1, kept - 1), before[:, -1:] >= top_p


def _largest(values: torch.Tensor, count: int) -> torch.Tensor:
    """Return the largest of each row, falling, (B, count); on CPU numpy sorts several times as fast."""
    if count < values.shape[-1] or values.is_cuda:
        return values.topk(min(count, values.shape[-1])).values
    return torch.from_numpy(np.sort(values.numpy())).flip(-1)


def draw(shares: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
    """Draw an id for each row.

    Args:
        shares: Probability of each token, (B, V), up to a factor.
        numbers: Random numbers in [0, 1), (B, width).

    Returns:
        Ids, (B,).
    """
    rows, vocabulary = shares.shape
    inner = min(_BLOCK_LEVELS, numbers.shape[1])
    size = 1 << inner
    whole = vocabulary - vocabulary % size
    blocks = shares[:, :whole].reshape(rows, -1, size).sum(dim=-1, dtype=torch.float64)
    last = shares[:, whole:].sum(dim=-1, keepdim=True, dtype=torch.float64)
    block = _descend(torch.cat([blocks, last], dim=1), numbers[:, : numbers.shape[1] - inner])
    ids = block * size + torch.arange(size, device=shares.device)  # (B, size)
    found = shares.gather(1, ids.clamp(max=vocabulary - 1)).masked_fill(ids >= vocabulary, 0.0)
    return (block * size + _descend(found, numbers[:, numbers.shape[1] - inner :]))[:, 0]


def _descend(shares: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
    """Return which of 2 ** levels shares (B, n) is drawn by numbers (B, levels), (B, 1)."""
    sums = torch.nn.functional.pad(shares.cumsum(dim=-1, dtype=torch.float64), (1, 0))
    levels = numbers.shape[1]
    first = torch.zeros_like(sums[:, :1], dtype=torch.long)
    below, above = torch.zeros_like(sums[:, :1]), sums[:, -1:]
    for level in range(levels):
        number, half = numbers[:, level : level + 1], first + (1 << (levels - 1 - level))
        middle = sums.gather(1, half.clamp(max=shares.shape[1]))
        upper = (number * (above - below) >= middle - below) & (middle < above)
        first = torch.where(upper, half, first)
        below, above = torch.where(upper, middle, below), torch.where(upper, above, middle)
    return first


def choose(logits: torch.Tensor, rules: Rules | None, numbers: torch.Tensor | None) -> torch.Tensor:
    """Return the next id of each row.

    The likeliest is the one with the lowest id of those that tie.

    Args:
        logits: Logits, (B, V).
        rules: How each row's token is chosen; None: all rows are greedy.
        numbers: Random numbers in [0, 1), (B, width); None with `rules`.

    Returns:
        Ids, (B,); -1 where the logits are NaN or infinite.
    """
    largest, best = logits.max(dim=-1)  # NaN counts as larger than any number
    chosen = best
    if rules is not None and numbers is not None:
        drawn = draw(filtered(logits, rules), numbers)
        chosen = torch.where(rules.temperature > 0, drawn, best)
    return torch.where(torch.isfinite(largest), chosen, -1)
