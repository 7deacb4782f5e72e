"""Tokenizers with a tokenizer.json, which the base class of transformers takes as it is."""

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tokenizers

from evaluation.tokenizers.base import NO_CHARACTER, EncodedText, LoadedTokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_UNUSED = ("version", "truncation", "padding", "post_processor")
"""Parts of tokenizer.json that ids and texts do not depend on here."""


class FastTokenizer(LoadedTokenizer):
    """A tokenizer of the `tokenizers` library, with the tokens that tokenizer_config.json adds.

    Args:
        loaded: The one that transformers loaded; its backend is changed.
    """

    is_fast = True

    def __init__(self, loaded: "PreTrainedTokenizerBase") -> None:
        template = loaded.chat_template
        template = template.get("default") if isinstance(template, dict) else template
        named = {key: str(token) for key, token in loaded.special_tokens_map.items()}
        super().__init__(str(loaded.name_or_path), named, template or None)
        self.backend: tokenizers.Tokenizer = loaded.backend_tokenizer
        self.backend.no_truncation()
        self.backend.no_padding()

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return each text's ids, as training did it."""
        return [encoding.ids for encoding in self._encoded(texts)]

    def encode_documents(self, texts: Sequence[str]) -> list[EncodedText]:
        """Return the tokens of documents, in which special tokens are ordinary text."""
        self.backend.encode_special_tokens = True
        try:
            return [EncodedText(one.ids, one.offsets) for one in self._encoded(texts)]
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
        ids = self.backend.encode("a", add_special_tokens=True).ids
        return self.bos_token_id is not None and ids[:1] == [self.bos_token_id]

    @cached_property
    def decodes_anywhere(self) -> bool:
        """Whether an answer's text does not depend on the text before it."""
        return self._decoders == {"ByteLevel"}

    @cached_property
    def _decoders(self) -> set[str]:
        decoder = self.backend.decoder
        return set() if decoder is None else set(_kinds(json.loads(decoder.__getstate__())))

    @cached_property
    def _bytes(self) -> dict[str, int]:
        """Bytes by the token that stands for each, if there are any."""
        if "ByteFallback" not in self._decoders:
            return {}
        names = {f"<0x{byte:02X}>": byte for byte in range(256)}
        return {name: byte for name, byte in names.items() if self.token_id(name) is not None}


def read_json(folder: Path) -> FastTokenizer:
    """Return the tokenizer of a folder's tokenizer.json; no code that comes with it is run."""
    from transformers import PreTrainedTokenizerFast

    return FastTokenizer(
        PreTrainedTokenizerFast.from_pretrained(
            folder, trust_remote_code=False, local_files_only=True
        )
    )


def _kinds(decoder: dict[str, Any]) -> list[str]:
    """Return the kinds of decoders in a sequence."""
    inner = decoder.get("decoders") if decoder.get("type") == "Sequence" else None
    return [kind for one in inner for kind in _kinds(one)] if inner else [str(decoder.get("type"))]


def _is_character(data: bytes) -> bool:
    try:
        return len(data.decode()) == 1
    except UnicodeDecodeError:
        return False
