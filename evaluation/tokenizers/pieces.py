"""Tokenizers with a SentencePiece model alone, which SentencePiece itself runs (`use_fast: false`).

Only what its ids decide by themselves is read: the text between BOS, EOS and UNK is encoded as
SentencePiece encodes a text. Whatever else transformers' slow classes do needs a tokenizer.json.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import sentencepiece

from evaluation.errors import SourceError
from evaluation.tokenizers.base import EncodedText, LoadedTokenizer
from evaluation.tokenizers.files import CONFIG, read_table

_CLASSES = (None, "LlamaTokenizer", "GemmaTokenizer", "PreTrainedTokenizer", "TokenizersBackend")
"""Classes whose ids are those of the model; XLM-R and its kin shift them."""

_SPECIAL = ("bos_token", "eos_token", "unk_token")


class PieceTokenizer(LoadedTokenizer):
    """A SentencePiece model.

    Args:
        path: The model's file; settings are read from its folder.

    Raises:
        SourceError: The file is no SentencePiece model, or its ids need a tokenizer.json.
    """

    is_fast = False

    def __init__(self, path: Path) -> None:
        config = read_table(path.parent / CONFIG)
        self.model = _opened(path)
        own = dict(zip(_SPECIAL, self._own_ids(), strict=True))
        special = {
            key: self.model.id_to_piece(number) for key, number in own.items() if number >= 0
        }
        special |= {key: _text(config[key]) for key in _SPECIAL if config.get(key)}
        template = config.get("chat_template")
        file = path.with_name("chat_template.jinja")
        template = file.read_text(encoding="utf-8") if file.exists() else template
        super().__init__(str(path.parent), special, template)
        _check(self, path, config)
        self._ids = {text: int(self.model.piece_to_id(text)) for text in special.values()}
        texts = sorted(self._ids, key=len, reverse=True)
        self._split = re.compile(f"({'|'.join(map(re.escape, texts))})")
        is_known = str(config.get("tokenizer_class")).startswith(("Llama", "Gemma"))
        self._says_bos = bool(config.get("add_bos_token", is_known))

    def _own_ids(self) -> tuple[int, int, int]:
        return self.model.bos_id(), self.model.eos_id(), self.model.unk_id()

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return each text's ids, as training did it."""
        return [self._encode(text) for text in texts]

    def _encode(self, text: str) -> list[int]:
        ids: list[int] = []
        for number, part in enumerate(self._split.split(text)):
            ids += [self._ids[part]] if number % 2 else self.model.encode(part)
        return ids

    def encode_documents(self, texts: Sequence[str]) -> list[EncodedText]:
        """Return the tokens of documents, in which special tokens are ordinary text."""
        return [EncodedText(list(self.model.encode(text)), None) for text in texts]

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

    def token_id(self, token: str) -> int | None:
        """Return the id of a token; None if the vocabulary does not have it."""
        number = int(self.model.piece_to_id(token))
        return number if self.model.id_to_piece(number) == token else None

    def vocabulary(self) -> dict[str, int]:
        """Return all tokens with their ids."""
        return {self.model.id_to_piece(n): n for n in range(self.model.get_piece_size())}

    def behaviour(self) -> object:
        """Return the model, and which of its tokens are recognized in a text."""
        return {"sentencepiece": self.model.serialized_model_proto().hex(), "special": self._ids}

    def byte_lengths(self) -> list[int]:
        """Return the UTF-8 bytes of each token, by id: `▁` is a blank, and `<0x0A>` one byte."""
        return [
            1 if self.model.is_byte(number) else len(piece.replace("▁", " ").encode())
            for piece, number in self.vocabulary().items()
        ]

    @property
    def unknown_id(self) -> int | None:
        """Id of the token for characters that the vocabulary lacks."""
        return int(self.model.unk_id())

    @property
    def whole_tokens(self) -> frozenset[int]:
        """Ids of the tokens that are recognized in a text as a whole."""
        return frozenset(self._ids.values())

    @property
    def adds_bos(self) -> bool:
        """Whether its own files, or else its class, say that BOS is put before each text."""
        return self._says_bos and self.bos_token_id is not None

    @property
    def decodes_anywhere(self) -> bool:
        """An answer that is decoded by itself would lose its first blank."""
        return False


def _opened(path: Path) -> sentencepiece.SentencePieceProcessor:
    try:
        model = sentencepiece.SentencePieceProcessor(model_file=str(path))
        if model.get_piece_size() > 0:
            return model
    except (RuntimeError, OSError):
        pass
    raise SourceError(f"{path}: is no SentencePiece model; copy the tokenizer again")


def _text(token: Any) -> str:
    """Return the text of a token, which may be an object with its flags."""
    return str(token.get("content") if isinstance(token, dict) else token)


def _check(tokenizer: PieceTokenizer, path: Path, config: dict[str, Any]) -> None:
    """Refuse what a SentencePiece model alone does not decide."""
    name = config.get("tokenizer_class")
    added = [_text(one) for one in (config.get("added_tokens_decoder") or {}).values()]
    for key in ("additional_special_tokens", "extra_special_tokens"):
        added += map(_text, config.get(key) or ())
    added += read_table(path.with_name("added_tokens.json"))
    added += tokenizer.special.values()
    known = set(tokenizer.special.values())
    reasons = {
        f"its class {name} may shift ids": str(name).removesuffix("Fast") not in map(str, _CLASSES),
        "sentencepiece.bpe.model is of a class that shifts ids": "bpe" in path.name and not name,
        "`legacy: false` has rules of its own": config.get("legacy") is False,
        "it has tokens that its model has not": any(tokenizer.token_id(t) is None for t in added),
        "it has added tokens": not set(added) <= known,
    }
    if reason := next((reason for reason, holds in reasons.items() if holds), None):
        raise SourceError(
            f"tokenizer {path.parent}: {path.name} alone does not give its ids, as {reason}; supply a "
            "tokenizer.json, and set `use_fast: true`"
        )
