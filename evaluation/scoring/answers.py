"""Requests for generated answers, the answers, and the rules that end them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from evaluation.settings.generation import Sampling

if TYPE_CHECKING:  # transformers take seconds to import, and verifying seldom needs them
    from evaluation.prefill.encoding import AnyTokenizer

GREEDY = Sampling()

StopReason = Literal["eos", "stop_string", "length"]

_SLACK = 8  # characters that may differ where a text is decoded from its middle on


@dataclass(frozen=True)
class GenerationRequest:
    """A prompt, which of its answers are requested, and how long they may be; greedy by default.

    Sample 3 is the same whether samples 0 to 2 are wanted too or not. `sampling.n` is not read.
    """

    id: str
    tokens: tuple[int, ...]
    max_new_tokens: int
    samples: tuple[int, ...] = (0,)
    sampling: Sampling = GREEDY


class AnswerKey(NamedTuple):
    """Which answer: the index of its request among those given, and its sample's index."""

    request: int
    sample: int


@dataclass(frozen=True)
class Answer:
    """What a model wrote: its text up to the first stop string, the raw text, all tokens but EOS.

    The raw text is that of all tokens, so that it can be cut again at other stop strings. Bytes at
    its end that are no whole character yet are decoded as the tokenizer does (U+FFFD).
    """

    text: str
    raw: str
    tokens: tuple[int, ...]
    stop_reason: StopReason


@dataclass(frozen=True)
class Stopping:
    """When an answer ends: at one of these ids, or once its text holds one of these strings."""

    eos_ids: frozenset[int]
    strings: tuple[str, ...]
    decode: Callable[[list[int]], str]

    def answer(self, tokens: list[int], reason: StopReason) -> Answer:
        """Return an answer that ended for this reason; a stop string in it comes before others.

        Args:
            tokens: Ids that the model wrote, without the EOS.
            reason: Why it wrote no more.

        Returns:
            The answer, its text cut at the first stop string.
        """
        raw = self.decode(tokens)
        text = cut(raw, self.strings)
        if text is None:
            return Answer(raw, raw, tuple(tokens), reason)
        return Answer(text, raw, tuple(tokens), "stop_string")


def stopping_with(
    tokenizer: "AnyTokenizer", eos: Iterable[int], strings: Iterable[str]
) -> Stopping:
    """Return when answers end; token ids are decoded with their special tokens, as they are.

    Args:
        tokenizer: The model's, which decodes answers.
        eos: Token ids that end an answer.
        strings: Stop strings; an answer ends where one is complete.

    Returns:
        The rules for ending an answer.
    """

    def decode(tokens: list[int]) -> str:
        return str(
            tokenizer.decode(tokens, skip_special_tokens=False, clean_up_tokenization_spaces=False)
        )

    return Stopping(frozenset(eos), tuple(strings), decode)


class StopSearch:
    """Looks for stop strings in an answer that grows, decoding no more of it than its end.

    Args:
        stopping: The rules for ending an answer.
    """

    def __init__(self, stopping: Stopping) -> None:
        self.stopping = stopping
        self._begin = 0  # the token from which on the answer is decoded
        self._needed = max(map(len, stopping.strings), default=0) + _SLACK

    def reached(self, tokens: list[int]) -> bool:
        """Return whether the last token completed a stop string; called after every token.

        Args:
            tokens: All tokens of the answer so far.

        Returns:
            True once the answer has to end; always False without stop strings.
        """
        strings, decode = self.stopping.strings, self.stopping.decode
        if not strings:
            return False
        tail = decode(tokens[self._begin :])
        if any(string in tail for string in strings):
            return cut(decode(tokens), strings) is not None
        if len(tail) > 4 * self._needed:
            middle = (self._begin + len(tokens)) // 2
            if len(decode(tokens[middle:])) >= self._needed:
                self._begin = middle
        return False


def cut(text: str, strings: Sequence[str]) -> str | None:
    """Cut a text at the first stop string in it.

    Args:
        text: Decoded text of an answer.
        strings: Stop strings.

    Returns:
        The text before it; None if there is no stop string.
    """
    found = [place for string in strings if (place := text.find(string)) >= 0]
    return text[: min(found)] if found else None


def cut_again(
    raw: str, stop_reason: StopReason, strings: Sequence[str]
) -> tuple[str, StopReason] | None:
    """Cut a stored raw text as it would have ended with these stop strings.

    Args:
        raw: Text of all generated tokens.
        stop_reason: Why generation ended.
        strings: Stop strings that count now.

    Returns:
        The text and why it ends. None where another stop string had ended it and none of these is
        in it: the model would have gone on, so it has to generate again.
    """
    text = cut(raw, strings)
    if text is not None:
        return text, "stop_string"
    return None if stop_reason == "stop_string" else (raw, stop_reason)
