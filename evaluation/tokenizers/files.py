"""A tokenizer's files: found in a folder or on the hub, and copied as they are.

Files are never written anew by a library: a tokenizer that transformers saves may encode text
differently than the one that it loaded.
"""

import json
import shutil
from pathlib import Path
from typing import Any

from evaluation.errors import SourceError
from evaluation.files import write_json

TOKENIZER_JSON = "tokenizer.json"
CONFIG = "tokenizer_config.json"

PATTERNS = (
    *("tokenizer*.json", "special_tokens_map.json", "added_tokens.json", "*.model", "*.model.v*"),
    *("*.tiktoken", "vocab.*", "merges.txt", "chat_template*"),
)
"""Names of the files that text and prompts depend on."""


def tokenizer_files(folder: Path) -> list[Path]:
    """Return the files of a tokenizer's folder and broken links, by name; weights may lie beside them."""
    matched = {path for pattern in PATTERNS for path in folder.glob(pattern)}
    return sorted(path for path in matched if not path.is_dir())


def read_table(path: Path) -> dict[str, Any]:
    """Return the content of a JSON file of the tokenizer; an empty one if there is no such file."""
    if not path.exists():
        return {}
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{path}: is not JSON ({error}); copy the tokenizer again") from None
    if not isinstance(content, dict):
        raise SourceError(f"{path}: is not a JSON object; copy the tokenizer again")
    return content


def copy_files(source: Path, target: Path) -> None:
    """Copy a tokenizer's files into an existing folder, byte by byte."""
    for path in tokenizer_files(source):
        shutil.copyfile(path, target / path.name)


def write_plain_copy(source: Path, target: Path) -> Path:
    """Copy a tokenizer into a new folder for another program, and return the folder's absolute path.

    Where there is a tokenizer.json, the class is the one that reads it as it is: others rebuild parts of it.
    """
    target.mkdir()
    copy_files(source, target)
    if (target / TOKENIZER_JSON).exists():
        config = {**read_table(source / CONFIG), "tokenizer_class": "PreTrainedTokenizerFast"}
        config.pop("auto_map", None)
        write_json(target / CONFIG, config)
    return target.absolute()


def find_pieces(folder: Path) -> Path | None:
    """Return tokenizer.model, or else the only SentencePiece model with another name; None without one."""
    if (folder / "tokenizer.model").exists():
        return folder / "tokenizer.model"
    others = [p for p in tokenizer_files(folder) if p.match("*.model") or p.match("*.model.v*")]
    if len(others) > 1:
        raise SourceError(
            f"tokenizer {folder}: it is not clear whether the model was trained with {others[0].name} or "
            f"{others[1].name}; copy that one to tokenizer.model"
        )
    return others[0] if others else None


def hub_errors() -> tuple[type[Exception], ...]:
    """Return what a download raises where the hub, the network or a name is at fault."""
    from huggingface_hub import errors

    of_hub = (errors.EntryNotFoundError, errors.HfHubHTTPError, errors.HFValidationError)
    return (ConnectionError, TimeoutError, errors.HTTPError, *of_hub)  # type: ignore[attr-defined]
