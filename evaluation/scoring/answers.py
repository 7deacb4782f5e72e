"""Define requests for generated answers, the answers, and the rules that end them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from evaluation.settings.generation import Sampling

GREEDY = Sampling()

StopReason = Literal["eos", "stop_string", "length"]

_SLACK = 8  # first characters that may be wrong if decoding begins in the middle of a text

BEFORE = 16
"""Tokens before an answer, or its end, with which it is decoded: enough for any one character."""


@dataclass(frozen=True)
class Answer:
    """A generated answer: its text up to the first stop string, the raw text, all tokens but EOS.

    The raw text decodes all tokens, so that it can be cut again at other stop strings. An incomplete
    character at its end is decoded as the tokenizer does (U+FFFD).
    """

    text: str
    raw: str
    tokens: tuple[int, ...]
    stop_reason: StopReason


@dataclass(frozen=True)
class Stopping:
    """The rules for ending an answer: at one of these ids, or once its text has one of these strings."""

    eos_ids: frozenset[int]
    strings: tuple[str, ...]
    decode: Callable[[Sequence[int], Sequence[int]], str]
    """Returns the text of an answer's ids, given the ids before them."""

    def answer(self, prompt: Sequence[int], tokens: list[int], reason: StopReason) -> Answer:
        """Return a finished answer; a stop string in its text overrides the given reason."""
        raw = self.decode(prompt[-BEFORE:], tokens)
        text = cut(raw, self.strings)
        if text is None:
            return Answer(raw, raw, tuple(tokens), reason)
        return Answer(text, raw, tuple(tokens), "stop_string")


LENGTH_ONLY = Stopping(frozenset(), (), lambda prompt, ids: "")
"""Ends answers at their largest length only, and decodes nothing; for token ids without a tokenizer."""


@dataclass(frozen=True)
class GenerationRequest:
    """A prompt, the length limit of its answer, and which of its samples that is; greedy by default.

    Sample 3 is the same whether or not samples 0 to 2 are also requested. `sampling.n` is not read.
    """

    id: str
    tokens: tuple[int, ...]
    max_new_tokens: int
    sample: int = 0
    sampling: Sampling = GREEDY
    stopping: Stopping = LENGTH_ONLY


Requests = Mapping[Any, GenerationRequest]
"""Requests by any keys."""

Answers = dict[Any, Answer]
"""Answers by the keys of their requests."""

AnswersAbout = tuple[Answers, Mapping[str, str]]
"""Answers, and what the summary of their rows says besides their cost."""


class StopSearch:
    """Looks for stop strings in a growing answer, of which it decodes only the end."""

    def __init__(self, stopping: Stopping, prompt: Sequence[int]) -> None:
        self.stopping = stopping
        self._prompt = list(prompt[-BEFORE:])
        self._begin = 0  # first token that is decoded
        self._needed = max(map(len, stopping.strings), default=0) + _SLACK

    def reached(self, tokens: list[int]) -> bool:
        """Return whether the last token completed a stop string; it must be called after every token."""
        strings, decode = self.stopping.strings, self.stopping.decode
        if not strings:
            return False
        tail = decode(self._before(tokens, self._begin), tokens[self._begin :])
        if any(string in tail for string in strings):
            return cut(decode(self._prompt, tokens), strings) is not None
        if len(tail) > 4 * self._needed:
            middle = (self._begin + len(tokens)) // 2
            if len(decode(self._before(tokens, middle), tokens[middle:])) >= self._needed:
                self._begin = middle
        return False

    def _before(self, tokens: list[int], place: int) -> list[int]:
        """Return the last ids before a place in the answer."""
        return [*self._prompt, *tokens[max(0, place - BEFORE) : place]][-BEFORE:]


def cut(text: str, strings: Sequence[str]) -> str | None:
    """Return a text until the first stop string in it; None if there is none."""
    places = [place for string in strings if (place := text.find(string)) >= 0]
    return text[: min(places)] if places else None


def cut_again(
    raw: str, stop_reason: StopReason, strings: Sequence[str]
) -> tuple[str, StopReason] | None:
    """Return a stored raw text where it would have ended with these stop strings, and why it ends.

    None if another stop string ended it and it has none of these: the model would have continued.
    """
    text = cut(raw, strings)
    if text is not None:
        return text, "stop_string"
    return None if stop_reason == "stop_string" else (raw, stop_reason)
