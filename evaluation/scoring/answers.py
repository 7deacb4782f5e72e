"""What a model is asked to write, when its answer ends, and what it wrote."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

StopReason = Literal["eos", "stop_string", "length"]

_WINDOW_SLACK = 4  # tokens; a token may begin in the middle of a character


@dataclass(frozen=True)
class GenerationRequest:
    """A prompt and how long its answer may be."""

    id: str
    tokens: tuple[int, ...]
    max_new_tokens: int


@dataclass(frozen=True)
class Answer:
    """What a model said: its text, cut at the first stop string, and all tokens but EOS."""

    text: str
    tokens: tuple[int, ...]
    stop_reason: StopReason


@dataclass(frozen=True)
class Stopping:
    """When an answer ends: at one of these ids, or once its text holds one of these strings."""

    eos_ids: frozenset[int]
    strings: tuple[str, ...]
    decode: Callable[[list[int]], str]

    def reached(self, tokens: list[int]) -> bool:
        """Whether the last token completed a stop string."""
        if not self.strings:
            return False
        window = max(len(text.encode()) for text in self.strings) + _WINDOW_SLACK
        tail = self.decode(tokens[-window:])
        return any(text in tail for text in self.strings) and self.cut(tokens)[1]

    def cut(self, tokens: list[int]) -> tuple[str, bool]:
        """The text up to the first stop string, and whether there is one."""
        text = self.decode(tokens)
        found = [place for stop in self.strings if (place := text.find(stop)) >= 0]
        return (text[: min(found)], True) if found else (text, False)
