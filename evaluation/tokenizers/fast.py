"""Tokenizers with a tokenizer.json, which the base class of transformers takes as it is."""

import codecs
import json
import re
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import tokenizers

from evaluation.tokenizers.base import NO_CHARACTER, EncodedDocument, LoadedTokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_UNUSED = ("version", "truncation", "padding", "post_processor")
"""Parts of tokenizer.json that ids and texts do not depend on here."""

_ONE_BYTE = "evaluation: one byte"
codecs.register_error(_ONE_BYTE, lambda error: (NO_CHARACTER, error.start + 1))  # type: ignore[attr-defined]
"""How bytes that are no character are decoded: each becomes a sign of its own."""


class FastTokenizer(LoadedTokenizer):
    """A tokenizer of the `tokenizers` library, with the tokens that tokenizer_config.json adds."""

    def __init__(self, loaded: "PreTrainedTokenizerBase") -> None:
        template = loaded.chat_template
        template = template.get("default") if isinstance(template, dict) else template
        self.name_or_path, self.chat_template = str(loaded.name_or_path), template or None
        self.special = {key: str(token) for key, token in loaded.special_tokens_map.items()}
        backend: tokenizers.Tokenizer = loaded.backend_tokenizer
        backend.no_truncation()
        backend.no_padding()
        self.backend, self.vocabulary = backend, backend.get_vocab(with_added_tokens=True)
        self.whole_tokens = frozenset(backend.get_added_tokens_decoder())
        model = json.loads(backend.model.__getstate__())
        self.unknown_id = self.vocabulary.get(model.get("unk_token"), model.get("unk_id"))
        begin = backend.encode("a", add_special_tokens=True).ids[:1]
        self.adds_bos = self.bos_token_id is not None and begin == [self.bos_token_id]
        decoder = json.dumps(json.loads(backend.to_str())["decoder"])
        decoders = {*re.findall('"type": "([^"]+)"', decoder)} - {"Sequence"}
        self.decodes_anywhere = decoders == {"ByteLevel"}
        names = (
            {f"<0x{byte:02X}>": byte for byte in range(256)} if "ByteFallback" in decoders else {}
        )
        self._bytes = {name: byte for name, byte in names.items() if name in self.vocabulary}

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return each text's ids, as training did it."""
        return [encoding.ids for encoding in self._encoded(texts)]

    def encode_documents(self, texts: Sequence[str]) -> list[EncodedDocument]:
        """Return the tokens of documents, in which special tokens are ordinary text."""
        self.backend.encode_special_tokens = True
        try:
            encodings = self._encoded(texts)
        finally:
            self.backend.encode_special_tokens = False
        return [
            EncodedDocument.of_ends(one.ids, byte_ends(text, one.offsets), len(text.encode()))
            for text, one in zip(texts, encodings, strict=True)
        ]

    def _encoded(self, texts: Sequence[str]) -> list[tokenizers.Encoding]:
        return self.backend.encode_batch(list(texts), add_special_tokens=False)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids from the beginning of a text on."""
        if not self._bytes:
            return self.backend.decode(list(ids), skip_special_tokens=False)
        tokens = [t for t in map(self.backend.id_to_token, ids) if t is not None]
        mended: list[str] = []  # the library replaces a whole run of bytes if one is no character
        for are_bytes, run in groupby(tokens, self._bytes.__contains__):
            texts = list(run)
            data = bytes(map(self._bytes.__getitem__, texts)) if are_bytes else b""
            mended += [data.decode(errors=_ONE_BYTE)] if are_bytes else texts
        return str(self.backend.decoder.decode(mended))

    def behaviour(self) -> object:
        """Return the content of tokenizer.json without truncation, padding and added BOS or EOS."""
        content = json.loads(self.backend.to_str())
        return {key: value for key, value in content.items() if key not in _UNUSED}


def byte_ends(text: str, offsets: list[tuple[int, int]]) -> npt.NDArray[np.int64]:
    """Return the byte of UTF-8 behind each token, by its first character and the one after its last.

    A character that several tokens share counts for the first of them, and text that no token covers
    counts for the next token.
    """
    ends = np.maximum.accumulate(np.array([end for _, end in offsets], dtype=np.int64))
    points = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
    widths = 1 + (points >= 0x80) + (points >= 0x800) + (points >= 0x10000)
    return np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)[ends]


def read_json(folder: Path) -> FastTokenizer:
    """Return the tokenizer of a folder's tokenizer.json; no code that comes with it is run."""
    from transformers import PreTrainedTokenizerFast

    options = {"trust_remote_code": False, "local_files_only": True}
    return FastTokenizer(PreTrainedTokenizerFast.from_pretrained(folder, **options))
