"""Tokenizers with a SentencePiece model alone, which SentencePiece itself runs (`use_fast: false`).

Only what its ids decide by themselves is read: the text between BOS, EOS and UNK is encoded as
SentencePiece encodes a text. Whatever else transformers' slow classes do needs a tokenizer.json.
"""

import re
from collections.abc import Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import sentencepiece

from evaluation.errors import SourceError
from evaluation.tokenizers.base import EncodedDocument, LoadedTokenizer
from evaluation.tokenizers.files import CONFIG, read_table

_CLASSES = (None, "LlamaTokenizer", "GemmaTokenizer", "PreTrainedTokenizer", "TokenizersBackend")
"""Classes whose ids are those of the model; XLM-R and its kin shift them."""

_SPECIAL = ("bos_token", "eos_token", "unk_token")


class PieceTokenizer(LoadedTokenizer):
    """The SentencePiece model of a file, with the settings in its folder."""

    def __init__(self, path: Path) -> None:
        config = read_table(path.parent / CONFIG)
        self.model = model = sentencepiece.SentencePieceProcessor(model_file=str(path))
        numbers = zip(_SPECIAL, (model.bos_id(), model.eos_id(), model.unk_id()), strict=True)
        special = {key: model.id_to_piece(number) for key, number in numbers if number >= 0}
        self.special = special | {key: _text(config[key]) for key in _SPECIAL if config.get(key)}
        file = path.with_name("chat_template.jinja")
        template = file.read_text(encoding="utf-8") if file.exists() else None
        self.name_or_path = str(path.parent)
        self.chat_template = template or config.get("chat_template")
        self.vocabulary = {model.id_to_piece(n): n for n in range(model.get_piece_size())}
        _check(self, path, config)
        self._ids = {text: self.vocabulary[text] for text in self.special.values()}
        self.unknown_id, self.whole_tokens = model.unk_id(), frozenset(self._ids.values())
        texts = sorted(self._ids, key=len, reverse=True)
        self._split = re.compile(f"({'|'.join(map(re.escape, texts))})")
        is_known = str(config.get("tokenizer_class")).startswith(("Llama", "Gemma"))
        self.adds_bos = bool(
            config.get("add_bos_token", is_known) and self.bos_token_id is not None
        )

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return each text's ids, as training did it."""
        split = [enumerate(self._split.split(text)) for text in texts]
        encoded = ([[self._ids[t]] if n % 2 else self.model.encode(t) for n, t in s] for s in split)
        return [[*chain.from_iterable(parts)] for parts in encoded]

    def encode_documents(self, texts: Sequence[str]) -> list[EncodedDocument]:
        """Return the tokens of documents, in which special tokens are ordinary text.

        The model does not tell where they are in it: its bytes are divided in proportion to the lengths of
        the pieces, which is exact for the document and approximate for a part of it.
        """
        documents = []
        for text in texts:
            ids, size = self.model.encode(text), len(text.encode())
            before = np.cumsum(self._lengths[ids])
            ends = np.rint(before * (size / max(before[-1:].sum(), 1))).astype(np.int64)
            documents.append(EncodedDocument.of_ends(ids, ends, size))
        return documents

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids from the beginning of a text on."""
        texts: list[str] = []
        run: list[int] = []
        names = {number: text for text, number in self._ids.items()}
        for number in ids:
            if number in names:
                texts += [self.model.decode(run), names[number]]
                run = []
            elif 0 <= number < self.model.get_piece_size():
                run.append(number)
        return "".join([*texts, self.model.decode(run)])

    def behaviour(self) -> object:
        """Return the model, and which of its tokens are recognized in a text."""
        return {"sentencepiece": self.model.serialized_model_proto().hex(), "special": self._ids}

    @cached_property
    def _lengths(self) -> npt.NDArray[np.int64]:
        """The UTF-8 bytes of each token, by id: `▁` is a blank, and `<0x0A>` one byte."""
        sizes = (
            1 if self.model.is_byte(number) else len(piece.replace("▁", " ").encode())
            for piece, number in self.vocabulary.items()
        )
        return np.fromiter(sizes, dtype=np.int64)


def _text(token: Any) -> str:
    """Return the text of a token, which may be an object with its flags."""
    return str(token.get("content") if isinstance(token, dict) else token)


def _check(tokenizer: PieceTokenizer, path: Path, config: dict[str, Any]) -> None:
    """Refuse what a SentencePiece model alone does not decide."""
    name, special = config.get("tokenizer_class"), tokenizer.special.values()
    added = [_text(token) for token in (config.get("added_tokens_decoder") or {}).values()]
    for key in ("additional_special_tokens", "extra_special_tokens"):
        added += map(_text, config.get(key) or ())
    added += read_table(path.with_name("added_tokens.json"))
    added += special
    reasons = {
        f"its class {name} may shift ids": str(name).removesuffix("Fast") not in map(str, _CLASSES),
        "sentencepiece.bpe.model is of a class that shifts ids": "bpe" in path.name and not name,
        "`legacy: false` has rules of its own": config.get("legacy") is False,
        "it has tokens that its model has not": not tokenizer.vocabulary.keys() >= set(added),
        "it has added tokens": not set(added) <= set(special),
    }
    if reason := next((reason for reason, holds in reasons.items() if holds), None):
        raise SourceError(
            f"tokenizer {path.parent}: {path.name} alone does not give its ids, as {reason}; supply a "
            "tokenizer.json, and set `use_fast: true`"
        )
