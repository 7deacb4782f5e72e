"""Define `LoadedTokenizer`, what this project asks of every tokenizer."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

NO_CHARACTER = "\ufffd"
"""Stands for bytes that are no character."""


@dataclass(frozen=True)
class EncodedText:
    """A document's token ids, and where the tokenizer tells it, each token's first and last character."""

    ids: list[int]
    offsets: list[tuple[int, int]] | None


class LoadedTokenizer(ABC):
    """Text to token ids and back. Special tokens in a text are recognized, and none is added.

    Args:
        name_or_path: Its name in messages.
        special: Special tokens by key, such as `eos_token`, as chat templates see them.
    """

    is_fast: bool

    def __init__(
        self, name_or_path: str, special: Mapping[str, str], chat_template: str | None
    ) -> None:
        self.name_or_path, self.special, self.chat_template = name_or_path, special, chat_template

    @abstractmethod
    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return each text's ids, as training did it."""

    @abstractmethod
    def encode_documents(self, texts: Sequence[str]) -> list[EncodedText]:
        """Return the tokens of documents, in which special tokens are ordinary text."""

    @abstractmethod
    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids from the beginning of a text on, special tokens included.

        Bytes that are no character, such as one that is cut off, become U+FFFD; ids that are no tokens
        are left out.
        """

    @abstractmethod
    def token_id(self, token: str) -> int | None:
        """Return the id of a token; None if the vocabulary does not have it."""

    @abstractmethod
    def vocabulary(self) -> dict[str, int]:
        """Return all tokens with their ids."""

    @abstractmethod
    def behaviour(self) -> object:
        """Return what the tokenizer's ids and texts depend on, without names and chat templates."""

    @property
    @abstractmethod
    def unknown_id(self) -> int | None:
        """Id of the token for characters that the vocabulary lacks; None if it lacks none."""

    @property
    @abstractmethod
    def whole_tokens(self) -> frozenset[int]:
        """Ids of the tokens that are recognized in a text as a whole, special ones among them."""

    @property
    @abstractmethod
    def adds_bos(self) -> bool:
        """Whether its own files say that BOS is put before each text."""

    @property
    @abstractmethod
    def decodes_anywhere(self) -> bool:
        """Whether an answer's text does not depend on the text before it."""

    @cached_property
    def bos_token_id(self) -> int | None:
        """Id of the token that begins a text."""
        return self._special_id("bos_token")

    @cached_property
    def eos_token_id(self) -> int | None:
        """Id of the token that ends a text."""
        return self._special_id("eos_token")

    def __len__(self) -> int:
        """Return the number of tokens."""
        return len(self.vocabulary())

    @cached_property
    def rows(self) -> int:
        """Number of rows that an embedding needs: the largest id plus one."""
        return 1 + max(self.vocabulary().values(), default=-1)

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

    def _special_id(self, key: str) -> int | None:
        return None if key not in self.special else self.token_id(self.special[key])
