"""Tokenizers that SentencePiece itself runs, with the rules of transformers' slow classes around it.

legacy: true     each part between added tokens is encoded as SentencePiece encodes a text: with a
                 blank in front, if the model was trained with one
legacy: false    a blank in front of the whole text alone, unless `add_prefix_space: false`
"""

import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from evaluation.tokenizers.base import EncodedText, LoadedTokenizer
from evaluation.tokenizers.config import read_config
from evaluation.tokenizers.piece_models import (
    DEFAULTS,
    GEMMA,
    added_tokens,
    check_class,
    open_model,
    without_prefix,
)

_SPACE = "▁"


class PieceTokenizer(LoadedTokenizer):
    """A SentencePiece model with added tokens.

    Args:
        model: The model's file; settings are read from its folder.

    Raises:
        SourceError: When the file is no SentencePiece model, or the ids of its class are not the model's.
    """

    is_fast = False

    def __init__(self, model: Path) -> None:
        folder = model.parent
        config = read_config(folder)
        check_class(config, model)
        self.model = open_model(model)
        defaults = DEFAULTS.get(config.class_name or "", self._own_tokens())
        super().__init__(read_config(folder, defaults, with_json=True))
        self.is_legacy = config.class_name == GEMMA or self.config.flag("legacy", True)
        self.has_prefix = self.config.flag("add_prefix_space", True)
        self._pieces = self.model if self.is_legacy else without_prefix(self.model)
        self.added = added_tokens(self.model, self.config)
        self._ids = {token.content: number for number, token in self.added.items()}
        self._special = {t.content for t in (*self.config.special.values(), *self.config.more)}
        self._split = _splitting(self._ids)

    def _own_tokens(self) -> dict[str, str]:
        model = self.model
        own = {
            "bos_token": model.bos_id(),
            "eos_token": model.eos_id(),
            "unk_token": model.unk_id(),
        }
        return {key: model.id_to_piece(number) for key, number in own.items() if number >= 0}

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return each text's ids, as training did it."""
        return [self._encode(self._parts(self._prefixed(text))) for text in texts]

    def encode_documents(self, texts: Sequence[str]) -> list[EncodedText]:
        """Return the tokens of documents, in which special tokens are ordinary text."""
        return [EncodedText(self._encode([self._prefixed(text)]), None) for text in texts]

    def _prefixed(self, text: str) -> str:
        if self.is_legacy or not text:
            return text
        text = text.replace(_SPACE, " ")
        return f"{_SPACE}{text}" if self.has_prefix else text

    def _parts(self, text: str) -> list[str | int]:
        """Return the ids of added tokens, and the texts between them; tokens may take blanks beside them."""
        if self._split is None:
            return [text]
        parts: list[str | int] = [
            self._ids[part] if number % 2 else part
            for number, part in enumerate(self._split.split(text))
        ]
        for place in range(1, len(parts), 2):
            self._take_beside(parts, place)
        return parts

    def _take_beside(self, parts: list[str | int], place: int) -> None:
        number = parts[place]
        assert isinstance(number, int)
        token, left, right = self.added[number], parts[place - 1], parts[place + 1]
        assert isinstance(left, str)
        assert isinstance(right, str)
        if token.rstrip:
            parts[place + 1] = right.lstrip()
        if token.lstrip:
            parts[place - 1] = left.rstrip()

    def _encode(self, parts: Sequence[str | int]) -> list[int]:
        ids: list[int] = []
        spelled: list[int] = []  # ids of text, without those of added tokens
        for part in parts:
            if isinstance(part, int):
                ids.append(part)
            else:
                encoded = self._encode_part(part)
                ids += encoded
                spelled = spelled or encoded
        is_text = len(spelled) > 1
        return ids if self.is_legacy else self._without_blank(ids, is_text=is_text)

    def _without_blank(self, ids: list[int], *, is_text: bool) -> list[int]:
        """Take off a blank before a special token: the prefix of a text that begins with the token.

        Args:
            is_text: Whether the second one is no added token but text, which may be unknown.
        """
        second = self.added.get(ids[1]) if len(ids) > 1 else None
        if ids[:1] != [self._blank] or second is None or second.content not in self._special:
            return ids
        return ids if is_text and ids[1] == self.model.unk_id() else ids[1:]

    @cached_property
    def _blank(self) -> int:
        return int(self.model.piece_to_id(_SPACE))

    def _encode_part(self, text: str) -> list[int]:
        """Encode a text between added tokens.

        Without its prefix, SentencePiece would strip the first blank. So transformers encodes such a text
        behind the unknown token's name, and takes off as many tokens as that has by itself.
        """
        if not text:
            return []
        if self.is_legacy or not text.startswith((_SPACE, " ")):
            return list(self._pieces.encode(text))
        before = self.config.special.get("unk_token")
        name = before.content if before else ""
        ids, count = self._pieces.encode(name + text), len(self._pieces.encode(name))
        return list(ids[count:] if len(ids) >= count else ids)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids from the beginning of a text on."""
        texts: list[str] = []
        run: list[int] = []
        for number in ids:
            if number in self.added:
                texts += [self._decode_part(run, is_first=not texts), self.added[number].content]
                run = []
            elif 0 <= number < self.model.get_piece_size():
                run.append(number)
        return "".join([*texts, self._decode_part(run, is_first=not texts)])

    def _decode_part(self, ids: list[int], *, is_first: bool) -> str:
        if not ids:
            return ""
        text = str(self._pieces.decode(ids))
        has_blank = self._pieces.id_to_piece(ids[0]).startswith(_SPACE)
        if not self.is_legacy and self.has_prefix and is_first and has_blank:
            return text.removeprefix(" ")
        return text

    def token_id(self, token: str) -> int | None:
        """Return the id of a token; None if the vocabulary does not have it."""
        if token in self._ids:
            return self._ids[token]
        number = int(self.model.piece_to_id(token))
        return number if self.model.id_to_piece(number) == token else None

    def vocabulary(self) -> dict[str, int]:
        """Return all tokens with their ids."""
        pieces = {self.model.id_to_piece(n): n for n in range(self.model.get_piece_size())}
        return {**pieces, **self._ids}

    def behaviour(self) -> object:
        """Return the model, its added tokens and the rules around it."""
        return {
            "sentencepiece": self.model.serialized_model_proto().hex(),
            "added": {str(number): repr(token) for number, token in self.added.items()},
            "special": sorted(self._special),
            "rules": [self.is_legacy, self.has_prefix],
        }

    def byte_lengths(self) -> list[int]:
        """Return the UTF-8 bytes of each token, by id: `▁` is a blank, and `<0x0A>` one byte."""
        lengths = [0] * self.rows
        for piece, number in self.vocabulary().items():
            is_byte = number not in self.added and self.model.is_byte(number)
            lengths[number] = 1 if is_byte else len(piece.replace(_SPACE, " ").encode())
        return lengths

    @property
    def unknown_id(self) -> int | None:
        """Id of the token for characters that the vocabulary lacks."""
        return int(self.model.unk_id())

    @property
    def whole_tokens(self) -> frozenset[int]:
        """Ids of the tokens that are recognized in a text as a whole, special ones among them."""
        return frozenset(self.added)

    @property
    def adds_bos(self) -> bool:
        """Whether its own files, or else its class, say that BOS is put before each text."""
        says = self.config.flag("add_bos_token", self.config.class_name in DEFAULTS)
        return says and self.bos_token_id is not None

    @property
    def decodes_anywhere(self) -> bool:
        """An answer that is decoded by itself would lose its first blank."""
        return False


def _splitting(ids: dict[str, int]) -> re.Pattern[str] | None:
    """Return a pattern that finds added tokens, of several at one place the longest."""
    texts = sorted(ids, key=len, reverse=True)
    return re.compile(f"({'|'.join(map(re.escape, texts))})") if texts else None
