"""Fit requests into a model's context window.

A request is scored as in lm-evaluation-harness; with max_length 6:

    context + continuation     0 1 2 3 4 | 5 6 7
    kept (max_length + 1)        1 2 3 4 | 5 6 7
    input                        1 2 3 4   5 6        the last token is predicted, but never an input
    predicted                            | 5 6 7
"""

from dataclasses import dataclass
from typing import NamedTuple

from evaluation.errors import ScoringError


@dataclass(frozen=True, slots=True)
class Request:
    """Tokens to score, and the context before them; `name` is for messages."""

    context: tuple[int, ...]
    continuation: tuple[int, ...]
    name: str = "a request"


def prefix_of(bos: int | None, eos: int | None) -> int | None:
    """Return the id that replaces an empty context: BOS, or EOS if there is none."""
    return eos if bos is None else bos


class Window(NamedTuple):
    """What a model's input has room for, and begins with."""

    max_length: int
    prefix: int | None
    """Replaces an empty context."""
    bos: int | None = None
    """Stays where it begins a context that is truncated: without it, many models' scores are no use."""

    def fit(self, request: Request) -> tuple[Request, bool]:
        """Give a request a context that fits, and tell whether it was truncated on the left.

        Raises ScoringError for what cannot be scored.
        """
        context, continuation, name = request.context, request.continuation, request.name
        if not context:
            if self.prefix is None:
                raise ScoringError(
                    f"{name}: an empty context is replaced by BOS or EOS, but the tokenizer has neither; "
                    "name one in its tokenizer_config.json, or have the prompt begin with a text"
                )
            context = (self.prefix,)
            continuation = continuation[continuation[:1] == context :]
        if not continuation:
            raise ScoringError(
                f"{name}: nothing to score but perhaps the prefix token; leave it out"
            )
        if len(continuation) > self.max_length:
            raise ScoringError(
                f"{name}: its continuation has {len(continuation)} tokens, more than the context window "
                f"of {self.max_length}; leave it out or raise the sequence length"
            )
        kept = self.max_length + 1 - len(continuation)
        is_truncated = len(context) > kept
        if is_truncated:
            first = context[:1] if context[0] == self.bos else ()
            context = (*first, *context[len(context) - kept + len(first) :])
        return Request(context, continuation, name), is_truncated
