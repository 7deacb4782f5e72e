"""Fit requests into a model's context window.

A request is scored as in lm-evaluation-harness; with max_length 6:

    context + continuation     0 1 2 3 4 | 5 6 7
    kept (max_length + 1)        1 2 3 4 | 5 6 7
    input                        1 2 3 4   5 6        the last token is predicted, but never an input
    predicted                            | 5 6 7

BOS stays where it begins a context that is truncated: without it, the scores of many models are no use.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evaluation.errors import ScoringError


@dataclass(frozen=True, slots=True)
class Request:
    """Tokens to score, and the context before them; `name` is for messages."""

    context: tuple[int, ...]
    continuation: tuple[int, ...]
    name: str = "a request"


class Score(NamedTuple):
    """Log-probability of a continuation in nats, and whether greedy decoding would produce it."""

    logprob: float
    is_greedy: bool


class BlockNats(NamedTuple):
    """Nats and tokens of blocks (blocks,), and both by `metrics.positions`' bins (blocks, bins)."""

    nats: NDArray[np.float64]
    tokens: NDArray[np.int64]
    nats_by_position: NDArray[np.float64]
    tokens_by_position: NDArray[np.int64]


class Fitted(NamedTuple):
    """Requests that fit the window, in their order, and the number of those truncated on the left."""

    requests: list[Request]
    truncated: int


def prefix_of(bos: int | None, eos: int | None) -> int | None:
    """Return the id that replaces an empty context: BOS, or EOS if there is none."""
    return eos if bos is None else bos


def fit_requests(
    requests: Sequence[Request],
    *,
    max_length: int,
    prefix_token: int | None,
    bos: int | None = None,
) -> Fitted:
    """Give every request a context, and truncate it on the left to fit the window.

    `prefix_token` replaces an empty context; `bos` stays in front of a context that begins with it. Raises
    ScoringError for what cannot be scored.
    """
    fitted = [_fit(request, max_length, prefix_token, bos) for request in requests]
    return Fitted([request for request, _ in fitted], sum(cut for _, cut in fitted))


def _fit(
    request: Request, max_length: int, prefix_token: int | None, bos: int | None
) -> tuple[Request, bool]:
    context, continuation, name = request.context, request.continuation, request.name
    if not context and prefix_token is None:
        raise ScoringError(
            f"{name}: an empty context is replaced by BOS or EOS, but the tokenizer has neither; name one "
            "in its tokenizer_config.json, or have the prompt begin with a text"
        )
    if not context and prefix_token is not None:
        context = (prefix_token,)
        continuation = continuation[continuation[:1] == context :]
    if not continuation:
        raise ScoringError(f"{name}: nothing to score but perhaps the prefix token; leave it out")
    if len(continuation) > max_length:
        raise ScoringError(
            f"{name}: its continuation has {len(continuation)} tokens, more than the context window "
            f"of {max_length}; leave it out or raise the sequence length"
        )
    kept = max_length + 1 - len(continuation)
    if len(context) <= kept:
        return Request(context, continuation, name), False
    first = context[:1] if context[0] == bos else ()
    rest = context[len(context) - kept + len(first) :]
    return Request((*first, *rest), continuation, name), True
