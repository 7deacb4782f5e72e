"""Load a tokenizer from a folder, or from the hub by way of its own files."""

from pathlib import Path

from evaluation.errors import SourceError, with_class
from evaluation.tokenizers.base import LoadedTokenizer
from evaluation.tokenizers.fast import read_json
from evaluation.tokenizers.files import (
    PATTERNS,
    TOKENIZER_JSON,
    find_pieces,
    hub_errors,
    tokenizer_files,
)
from evaluation.tokenizers.pieces import PieceTokenizer

SENTENCE = "The quick brown fox jumps over the lazy dog."


def load_tokenizer(
    name_or_folder: str | Path, *, use_fast: bool, revision: str | None = None
) -> LoadedTokenizer:
    """Load a tokenizer from a folder, or download its files from the hub.

    With `use_fast`, tokenizer.json is read where there is one; otherwise the SentencePiece model. One that
    encodes a sentence to nothing, or does not give it back, is refused.
    """
    name = str(name_or_folder)
    folder = local_folder(name, revision)
    try:
        tokenizer = _opened(folder, use_fast)
        (ids,) = tokenizer.encode([SENTENCE])
        text = tokenizer.decode(ids)
    except (MemoryError, SourceError):
        raise
    except Exception as error:  # `tokenizers` raises no other class
        raise SourceError(
            f"tokenizer {name} cannot be loaded: {with_class(error)}; copy its files again"
        ) from error
    tokenizer.name_or_path = name
    is_lacking = tokenizer.unknown_id in ids  # a small vocabulary may lack some of its characters
    letters = {"".join(one.split()).casefold() for one in (text, SENTENCE)}  # not all keep the rest
    if not ids or not (is_lacking or len(letters) == 1):
        raise SourceError(
            f"tokenizer {name}: {SENTENCE!r} becomes {ids[:12]}, and that {text[:60]!r}; its vocabulary or "
            "decoder is missing: copy the tokenizer again"
        )
    return tokenizer


def local_folder(name: str, revision: str | None) -> Path:
    """Return a tokenizer's folder, or that of its files downloaded from the hub."""
    if Path(name).is_dir():
        return Path(name)
    if name.startswith(("/", ".", "~")) or name.count("/") > 1 or Path(name).exists():
        raise SourceError(f"tokenizer {name}: no such folder; give a hub id or an existing folder")
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, revision=revision, allow_patterns=list(PATTERNS)))
    except hub_errors() as error:
        raise SourceError(
            f"tokenizer {name} cannot be loaded from the hub: {with_class(error)}; correct its name or "
            "revision, run `hf auth login` if it is gated, or set `tokenizer.name` to a folder with its files"
        ) from error


def _opened(folder: Path, use_fast: bool) -> LoadedTokenizer:
    if use_fast and (folder / TOKENIZER_JSON).exists():
        return read_json(folder)
    if pieces := find_pieces(folder):
        return PieceTokenizer(pieces)
    names = ", ".join(path.name for path in tokenizer_files(folder)) or "no file of a tokenizer"
    wanted = TOKENIZER_JSON if use_fast else "a SentencePiece model, or set `use_fast: true`"
    raise SourceError(
        f"tokenizer {folder}: its vocabulary is missing (there is {names}); supply {wanted}"
    )
