"""Load a tokenizer from a folder, or from the hub by way of its own files."""

import contextlib
import logging
import re
from collections.abc import Iterator
from pathlib import Path

from evaluation.errors import SourceError, one_line
from evaluation.tokenizers.base import LoadedTokenizer
from evaluation.tokenizers.config import TokenizerConfig, read_config
from evaluation.tokenizers.fast import FastTokenizer, read_byte_level, read_json
from evaluation.tokenizers.files import PATTERNS, Vocabulary, find_vocabulary
from evaluation.tokenizers.pieces import PieceTokenizer

log = logging.getLogger(__name__)

_BYTE_LEVEL = (None, "GPT2Tokenizer", "PreTrainedTokenizer", "TokenizersBackend")
"""Classes whose vocab.json and merges.txt are those of GPT-2's pattern."""

SENTENCE = "The quick brown fox jumps over the lazy dog."


def load_tokenizer(
    name_or_folder: str | Path, *, use_fast: bool, revision: str | None = None
) -> LoadedTokenizer:
    """Load a tokenizer from a folder, or download its files from the hub.

    Args:
        name_or_folder: Hub id, or folder.
        use_fast: Whether tokenizer.json is read where there is one; otherwise the SentencePiece model.
        revision: The hub's revision; None: `main`.

    Raises:
        SourceError: When it cannot be loaded.
    """
    name = str(name_or_folder)
    with _one_sentence(name):
        folder = local_folder(name, revision)
        tokenizer = _opened(find_vocabulary(folder, use_fast=use_fast))
        tokenizer.name_or_path = name
    return tokenizer


def local_folder(name: str, revision: str | None) -> Path:
    """Return a tokenizer's folder, or that of its files downloaded from the hub.

    Raises:
        SourceError: When there is no such folder, or the hub does not give the files; all as one sentence.
    """
    if Path(name).is_dir():
        return Path(name)
    if name.startswith(("/", ".", "~")) or name.count("/") > 1 or Path(name).exists():
        raise SourceError(f"tokenizer {name}: no such folder; give a hub id or an existing folder")
    from huggingface_hub import snapshot_download

    with _one_sentence(name):
        return Path(snapshot_download(name, revision=revision, allow_patterns=list(PATTERNS)))


def _opened(vocabulary: Vocabulary) -> LoadedTokenizer:
    if vocabulary.kind == "pieces":
        return PieceTokenizer(vocabulary.path)
    config = read_config(vocabulary.path.parent)
    _check_code(config)
    if vocabulary.kind == "json":
        return FastTokenizer(read_json(vocabulary.path), config)
    _check_byte_level(config)
    return FastTokenizer(read_byte_level(vocabulary.path), config)


def _check_code(config: TokenizerConfig) -> None:
    """Refuse a tokenizer whose class is in code of its own: it may do more than its files say."""
    if config.content.get("auto_map") is None or config.class_name is None:
        return
    import transformers

    if not any(hasattr(transformers, config.class_name + end) for end in ("", "Fast")):
        raise SourceError(
            f"tokenizer {config.folder} cannot be loaded: it needs code of its own (`auto_map`), "
            "which is never run; use one without"
        )


def _check_byte_level(config: TokenizerConfig) -> None:
    if config.class_name not in _BYTE_LEVEL:
        raise SourceError(
            f"tokenizer {config.folder}: how {config.class_name} splits text stands in no file of it (it has "
            "vocab.json and merges.txt, but no tokenizer.json); copy the tokenizer.json that belongs to it"
        )


def check_sentence(tokenizer: LoadedTokenizer) -> None:
    """Refuse a tokenizer that encodes a sentence to nothing, or does not give it back.

    Words that its vocabulary lacks are left out of the sentence.

    Raises:
        SourceError: When that is so, with what it gives instead.
    """
    words = SENTENCE.split()
    if not all(tokenizer.encode(words)):
        raise SourceError(
            f"tokenizer {tokenizer.name_or_path}: it encodes {SENTENCE!r} to no token at all; copy the "
            "tokenizer again, with its vocabulary"
        )
    ids = tokenizer.encode([f" {word}" for word in words])
    known = [
        word
        for word, of_word in zip(words, ids, strict=True)
        if tokenizer.unknown_id not in of_word
    ]
    sentence = " ".join(known or words)
    (ids_of,) = tokenizer.encode([sentence])
    text = tokenizer.decode(ids_of)
    if _letters(text) != _letters(sentence):
        raise SourceError(
            f"tokenizer {tokenizer.name_or_path}: {sentence!r} becomes {ids_of[:12]}, and that "
            f"{text[:80]!r}, so that neither prompts nor answers would be right; its vocabulary or "
            "decoder is missing: copy the tokenizer again"
        )


def _letters(text: str) -> str:
    """Return a text without blanks and case, which some tokenizers do not keep."""
    return "".join(text.split()).casefold()


@contextlib.contextmanager
def _one_sentence(name: str) -> Iterator[None]:
    """Turn any error of a library or the hub into one SourceError."""
    try:
        yield
    except SourceError:
        raise
    except (AttributeError, TypeError) as error:  # no message for a user, and no file's name
        log.debug("where it happened:", exc_info=True)
        raise SourceError(
            f"tokenizer {name} cannot be loaded: tokenizer.json or tokenizer_config.json does not hold "
            "what it should; copy the tokenizer again (`python -m evaluation -v …` shows where)"
        ) from error
    except Exception as error:
        raise SourceError(f"tokenizer {name} cannot be loaded: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError

    reason = str(error)
    if isinstance(error, GatedRepoError | RepositoryNotFoundError) or "gated repo" in reason:
        return "it is not on the hub, or not open to you: check the name, or run `hf auth login`"
    if isinstance(error, ConnectionError) or re.search(r"(?i)connect|offline|outgoing", reason):
        return "the hub cannot be reached: run prefill where it can, or set `tokenizer.name` to a folder"
    return one_line(error) or type(error).__name__
