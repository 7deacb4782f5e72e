"""Define `LoadedTokenizer`, what this project asks of every tokenizer."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

Int32 = npt.NDArray[np.int32]

NO_CHARACTER = "\ufffd"
"""Stands for bytes that are no character."""


@dataclass(frozen=True)
class EncodedDocument:
    """A document's tokens, and the bytes of text that each stands for, which add up to its own."""

    ids: Int32
    sizes: Int32

    @classmethod
    def of_ends(cls, ids: Sequence[int], ends: npt.NDArray[Any], size: int) -> "EncodedDocument":
        """Return tokens by the byte behind each; the last one ends with the text, which has `size` bytes."""
        ends[-1:] = size
        return cls(np.array(ids, dtype=np.int32), np.diff(ends, prepend=0).astype(np.int32))


class LoadedTokenizer(ABC):
    """Text to token ids and back. Special tokens in a text are recognized, and none is added."""

    name_or_path: str
    """Its name in messages."""
    special: Mapping[str, str]
    """Special tokens by key, such as `eos_token`, as chat templates see them."""
    chat_template: str | None
    vocabulary: Mapping[str, int]
    """All tokens with their ids."""
    unknown_id: int | None
    """Id of the token for characters that the vocabulary lacks; None if it lacks none."""
    whole_tokens: frozenset[int]
    """Ids of the tokens that are recognized in a text as a whole, special ones among them."""
    adds_bos: bool
    """Whether its own files say that BOS is put before each text."""
    decodes_anywhere: bool = False
    """Whether an answer's text does not depend on the text before it."""

    @abstractmethod
    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return each text's ids, as training did it."""

    @abstractmethod
    def encode_documents(self, texts: Sequence[str]) -> list[EncodedDocument]:
        """Return the tokens of documents, in which special tokens are ordinary text."""

    @abstractmethod
    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids from the beginning of a text on, special tokens included.

        Bytes that are no character, such as one that is cut off, become U+FFFD; ids that are no tokens
        are left out.
        """

    @abstractmethod
    def behaviour(self) -> object:
        """Return what the tokenizer's ids and texts depend on, without names and chat templates."""

    @cached_property
    def bos_token_id(self) -> int | None:
        """Id of the token that begins a text."""
        return self.vocabulary.get(self.special.get("bos_token", ""))

    @cached_property
    def eos_token_id(self) -> int | None:
        """Id of the token that ends a text."""
        return self.vocabulary.get(self.special.get("eos_token", ""))

    @cached_property
    def rows(self) -> int:
        """Number of rows that an embedding needs: the largest id plus one."""
        return 1 + max(self.vocabulary.values(), default=-1)

    def decode_answer(self, prompt: Sequence[int], answer: Sequence[int]) -> str:
        """Return the text of ids as it continues a prompt.

        That is the text of both without the prompt's. By itself, an answer may lose its first blank. A
        character whose bytes begin in the prompt belongs to the answer.

        Args:
            prompt: Ids before the answer; its last few are enough.
        """
        is_cut = bool(prompt) and self.decode(prompt[-1:]).endswith(NO_CHARACTER)
        if self.decodes_anywhere and not is_cut:
            return self.decode(answer)
        whole = self.decode([*prompt, *answer])
        for end in range(len(prompt), 0, -1):
            before = self.decode(prompt[:end])
            if not before.endswith(NO_CHARACTER) and whole.startswith(before):
                return whole[len(before) :]
        return whole
