"""Tokenizers that the `tokenizers` library runs, from tokenizer.json as it is."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import decoders, models, pre_tokenizers

from evaluation.errors import SourceError, one_line
from evaluation.tokenizers.base import NO_CHARACTER, EncodedText, LoadedTokenizer
from evaluation.tokenizers.config import AddedToken, TokenizerConfig

_UNUSED = ("version", "truncation", "padding", "post_processor")
"""Parts of tokenizer.json that ids and texts do not depend on here."""

_WITHOUT_CONTEXT = {"ByteLevel"}
"""Decoders whose text of an answer does not depend on the text before it."""


class FastTokenizer(LoadedTokenizer):
    """A tokenizer of the `tokenizers` library, with the tokens that tokenizer_config.json adds.

    Args:
        backend: The tokenizer that the file describes; it is changed.
    """

    is_fast = True

    def __init__(self, backend: tokenizers.Tokenizer, config: TokenizerConfig) -> None:
        super().__init__(config)
        backend.no_truncation()
        backend.no_padding()
        self.backend = backend
        self.added_by_config = _add_tokens(backend, config)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return each text's ids, as training did it."""
        return [encoding.ids for encoding in self._encoded(texts)]

    def encode_documents(self, texts: Sequence[str]) -> list[EncodedText]:
        """Return the tokens of documents, in which special tokens are ordinary text."""
        self.backend.encode_special_tokens = True
        try:
            return [
                EncodedText(encoding.ids, encoding.offsets) for encoding in self._encoded(texts)
            ]
        finally:
            self.backend.encode_special_tokens = False

    def _encoded(self, texts: Sequence[str]) -> list[tokenizers.Encoding]:
        return self.backend.encode_batch(list(texts), add_special_tokens=False)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids from the beginning of a text on."""
        if not self._bytes:
            return self.backend.decode(list(ids), skip_special_tokens=False)
        tokens = [t for t in map(self.backend.id_to_token, ids) if t is not None]
        return str(self.backend.decoder.decode(self._mended(tokens)))

    def _mended(self, tokens: list[str]) -> list[str]:
        """Return tokens in which bytes that are no character are replaced.

        The library replaces a whole run of byte tokens if one of them is none.
        """
        mended: list[str] = []
        run: list[str] = []
        for token in [*tokens, ""]:
            if token in self._bytes:
                run.append(token)
                continue
            if run:
                mended += self._characters(run)
                run = []
            mended.append(token)
        return mended[:-1]

    def _characters(self, run: list[str]) -> list[str]:
        """Return byte tokens of whole characters as they are, and U+FFFD for each other one."""
        data = bytes(self._bytes[token] for token in run)
        kept: list[str] = []
        while len(kept) < len(run):
            start = len(kept)
            size = next((n for n in range(1, 5) if _is_character(data[start : start + n])), 0)
            kept += run[start : start + size] if size else [NO_CHARACTER]
        return kept

    def token_id(self, token: str) -> int | None:
        """Return the id of a token; None if the vocabulary does not have it."""
        return self.backend.token_to_id(token)

    def vocabulary(self) -> dict[str, int]:
        """Return all tokens with their ids."""
        return dict(self.backend.get_vocab(with_added_tokens=True))

    def behaviour(self) -> object:
        """Return the content of tokenizer.json without truncation, padding and added BOS or EOS."""
        content = json.loads(self.backend.to_str())
        return {key: value for key, value in content.items() if key not in _UNUSED}

    @property
    def unknown_id(self) -> int | None:
        """Id of the token for characters that the vocabulary lacks; None if it lacks none."""
        model = json.loads(self.backend.model.__getstate__())
        token, number = model.get("unk_token"), model.get("unk_id")
        return number if token is None else self.token_id(token)

    @property
    def whole_tokens(self) -> frozenset[int]:
        """Ids of the tokens that are recognized in a text as a whole, special ones among them."""
        return frozenset(self.backend.get_added_tokens_decoder())

    @property
    def adds_bos(self) -> bool:
        """Whether its own files say that BOS is put before each text."""
        said = self.config.content.get("add_bos_token")
        if isinstance(said, bool):
            return said and self.bos_token_id is not None
        ids = self.backend.encode("a", add_special_tokens=True).ids
        return self.bos_token_id is not None and ids[:1] == [self.bos_token_id]

    @cached_property
    def decodes_anywhere(self) -> bool:
        """Whether an answer's text does not depend on the text before it."""
        return set(self._decoders) == _WITHOUT_CONTEXT

    @cached_property
    def _decoders(self) -> list[str]:
        decoder = self.backend.decoder
        return [] if decoder is None else _kinds(json.loads(decoder.__getstate__()))

    @cached_property
    def _bytes(self) -> dict[str, int]:
        """Bytes by the token that stands for each, if there are any."""
        if "ByteFallback" not in self._decoders:
            return {}
        names = {f"<0x{byte:02X}>": byte for byte in range(256)}
        return {name: byte for name, byte in names.items() if self.token_id(name) is not None}


def _kinds(decoder: Any) -> list[str]:
    """Return the kinds of decoders in a sequence."""
    if not isinstance(decoder, dict):
        return []
    inner = decoder.get("decoders") if decoder.get("type") == "Sequence" else None
    return [kind for one in inner for kind in _kinds(one)] if inner else [str(decoder.get("type"))]


def _is_character(data: bytes) -> bool:
    try:
        return len(data.decode()) == 1
    except UnicodeDecodeError:
        return False


def _add_tokens(backend: tokenizers.Tokenizer, config: TokenizerConfig) -> tuple[str, ...]:
    """Add the tokens that tokenizer_config.json has and tokenizer.json lacks; return their texts.

    Raises:
        SourceError: When a token has another id than tokenizer_config.json says.
    """
    there = {token.content for token in backend.get_added_tokens_decoder().values()}
    numbered = [(token, number) for number, token in sorted(config.added.items())]
    named = [(token, None) for token in (*config.special.values(), *config.more)]
    lacking: dict[str, tuple[AddedToken, int | None]] = {}
    for token, number in (*numbered, *named):
        if token.content not in there:
            lacking.setdefault(token.content, (token, number))
    for token, number in lacking.values():
        backend.add_tokens([tokenizers.AddedToken(**asdict(token))])
        given = backend.token_to_id(token.content)
        if number is not None and given != number:
            raise SourceError(
                f"tokenizer {config.folder}: tokenizer_config.json says that {token.content!r} has id "
                f"{number}, but in tokenizer.json it has {given}; copy both files from one tokenizer"
            )
    return tuple(lacking)


def read_json(path: Path) -> tokenizers.Tokenizer:
    """Return the tokenizer that a tokenizer.json describes; raise SourceError if it describes none."""
    try:
        return tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # noqa: BLE001 - the library has no class of its own
        raise SourceError(
            f"{path}: does not describe a tokenizer ({one_line(error)}); copy the tokenizer again"
        ) from None


def read_byte_level(vocabulary: Path) -> tokenizers.Tokenizer:
    """Return GPT-2's tokenizer with a vocab.json and the merges.txt beside it.

    Raises:
        SourceError: When the files do not fit together.
    """
    try:
        model = models.BPE.from_file(str(vocabulary), str(vocabulary.with_name("merges.txt")))
    except Exception as error:  # noqa: BLE001 - the library has no class of its own
        raise SourceError(
            f"{vocabulary}: is no vocabulary for merges.txt ({one_line(error)}); copy the tokenizer again"
        ) from None
    backend = tokenizers.Tokenizer(model)
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    return backend
