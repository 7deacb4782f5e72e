"""SentencePiece models: which are read, without the blank that they put in front, and their added tokens."""

from pathlib import Path

import sentencepiece

from evaluation.errors import SourceError
from evaluation.tokenizers.config import AddedToken, TokenizerConfig
from evaluation.tokenizers.files import SHIFTED

LLAMA, GEMMA = "LlamaTokenizer", "GemmaTokenizer"

DEFAULTS = {
    LLAMA: {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"},
    GEMMA: {"bos_token": "<bos>", "eos_token": "<eos>", "unk_token": "<unk>", "pad_token": "<pad>"},
}
"""Special tokens of the classes whose ids are SentencePiece's own, where no file names them."""

_PLAIN = (None, "PreTrainedTokenizer", "TokenizersBackend", "SentencePieceBackend")
"""Class names that say nothing; ids are then SentencePiece's own, and so are BOS, EOS and UNK."""


def open_model(path: Path) -> sentencepiece.SentencePieceProcessor:
    """Return the SentencePiece model of a file; raise SourceError if it is none."""
    try:
        model = sentencepiece.SentencePieceProcessor(model_file=str(path))
        if model.get_piece_size() > 0:
            return model
    except (RuntimeError, OSError):
        pass
    raise SourceError(
        f"{path}: is no SentencePiece model; copy the tokenizer again, with a tokenizer.json, and set "
        "`use_fast: true`"
    )


def without_prefix(
    model: sentencepiece.SentencePieceProcessor,
) -> sentencepiece.SentencePieceProcessor:
    """Return the model that puts no blank in front of a text."""
    from sentencepiece import sentencepiece_model_pb2 as protobuf

    proto = protobuf.ModelProto.FromString(  # type: ignore[attr-defined]  # made when it is imported
        model.serialized_model_proto()
    )
    proto.normalizer_spec.add_dummy_prefix = False
    return sentencepiece.SentencePieceProcessor(model_proto=proto.SerializeToString())


def added_tokens(
    model: sentencepiece.SentencePieceProcessor, config: TokenizerConfig
) -> dict[int, AddedToken]:
    """Return added and special tokens by id: the model's own where it has them, else behind all others.

    Raises:
        SourceError: When two tokens would have one id, or one counts only as a whole word.
    """
    ids = {model.id_to_piece(number): number for number in range(model.get_piece_size())}
    added = dict(config.added)
    ids |= {token.content: number for number, token in added.items()}
    next_id = len(ids)
    there = {token.content for token in added.values()}
    for token in (*config.special.values(), *config.more):
        if token.content in there:
            continue
        there.add(token.content)
        if token.content not in ids:
            ids[token.content] = next_id
            next_id += 1
        number = ids[token.content]
        if number in added:
            raise _unclear(config, f"{token.content!r} and {added[number].content!r} have one id")
        added[number] = token
    for token in added.values():
        if token.single_word:
            raise _unclear(config, f"{token.content!r} counts only as a whole word (`single_word`)")
    return added


def _unclear(config: TokenizerConfig, what: str) -> SourceError:
    return SourceError(
        f"tokenizer {config.folder}: {what}, which a SentencePiece model cannot do; give it a "
        "tokenizer.json and set `use_fast: true`, or correct its added tokens"
    )


def check_class(config: TokenizerConfig, model: Path) -> None:
    """Refuse a class whose ids are not those of its SentencePiece model.

    Raises:
        SourceError: When tokenizer_config.json names such a class, or the model's name is typical of one.
    """
    name = config.class_name
    if name in DEFAULTS or (name in _PLAIN and model.name != SHIFTED):
        return
    what = (
        f"tokens of {name}" if name not in _PLAIN else f"{model.name} without a `tokenizer_class`"
    )
    raise SourceError(
        f"tokenizer {model.parent}: the ids of {what} are not those of the SentencePiece model alone (XLM-R "
        "and its kin shift them), so they cannot be read from it; give it a tokenizer.json and set "
        '`use_fast: true`, or, if training used the model as it is, write `"tokenizer_class": '
        f'"{LLAMA}"` into its tokenizer_config.json'
    )
