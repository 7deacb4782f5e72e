"""Tokenizers with a tokenizer.json, which the base class of transformers takes as it is."""

import json
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tokenizers

from evaluation.tokenizers.base import NO_CHARACTER, EncodedText, LoadedTokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_UNUSED = ("version", "truncation", "padding", "post_processor")
"""Parts of tokenizer.json that ids and texts do not depend on here."""


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
        decoders = set(_kinds(json.loads(backend.to_str())["decoder"]))
        self.decodes_anywhere = decoders == {"ByteLevel"}
        names = (
            {f"<0x{byte:02X}>": byte for byte in range(256)} if "ByteFallback" in decoders else {}
        )
        self._bytes = {name: byte for name, byte in names.items() if name in self.vocabulary}

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
        start = 0
        while start < len(tokens):
            run = takewhile(self._bytes.__contains__, tokens[start : start + 4])
            data = bytes(self._bytes[token] for token in run)
            sizes = (n for n in range(1, len(data) + 1) if _is_character(data[:n]))
            size = next(sizes, 0 if data else 1)
            mended += tokens[start : start + size] or [NO_CHARACTER]
            start += max(size, 1)
        return mended

    def behaviour(self) -> object:
        """Return the content of tokenizer.json without truncation, padding and added BOS or EOS."""
        content = json.loads(self.backend.to_str())
        return {key: value for key, value in content.items() if key not in _UNUSED}


def read_json(folder: Path) -> FastTokenizer:
    """Return the tokenizer of a folder's tokenizer.json; no code that comes with it is run."""
    from transformers import PreTrainedTokenizerFast

    options = {"trust_remote_code": False, "local_files_only": True}
    return FastTokenizer(PreTrainedTokenizerFast.from_pretrained(folder, **options))


def _kinds(decoder: dict[str, Any] | None) -> list[str]:
    """Return the kinds of decoders in a sequence."""
    if decoder is None:
        return []
    inner = decoder.get("decoders") if decoder.get("type") == "Sequence" else None
    return (
        [kind for inner_part in inner for kind in _kinds(inner_part)]
        if inner
        else [str(decoder.get("type"))]
    )


def _is_character(data: bytes) -> bool:
    try:
        return len(data.decode()) == 1
    except UnicodeDecodeError:
        return False
