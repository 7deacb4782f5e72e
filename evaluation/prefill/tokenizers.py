"""Tokenizers, fast and slow: loaded, identified, and saved with a stage's caches."""

import contextlib
import json
import logging
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from huggingface_hub import snapshot_download
from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError
from transformers import AutoTokenizer
from transformers.tokenization_utils_sentencepiece import SentencePieceBackend

from evaluation.errors import SourceError
from evaluation.fingerprints import fingerprint, unordered
from evaluation.prefill.definitions import saved_description, tokenizer_definition, tokenizer_files
from evaluation.prefill.encoding import AnyTokenizer, bos_ids
from evaluation.prefill.entries import is_current, new_entry, read_meta, write_meta
from evaluation.prefill.sources import Reading
from evaluation.prefill.states import Checksums, are_unchanged, state_of
from evaluation.regular_files import check_regular, open_regular
from evaluation.settings.plan import StagePlan
from evaluation.settings.planning import tokenizer_origin

log = logging.getLogger(__name__)

_TABLES = {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"}
"""A tokenizer's files that must be JSON objects; all its files must be regular files."""

_SENTENCEPIECE_FILES = ("tokenizer.model", "spiece.model", "sentencepiece.bpe.model")


def prefill_tokenizer(plan: StagePlan) -> tuple[AnyTokenizer, dict[str, Any]]:
    """Fetch a stage's tokenizer and open it.

    Args:
        plan: The stage.

    Returns:
        The tokenizer, and its description with its chat template.
    """
    about = fetch_tokenizer(plan)
    tokenizer = load_tokenizer(plan.tokenizer_folder, use_fast=plan.tokenizer.use_fast)
    return tokenizer, about | {"chat_template": _default_template(tokenizer)}


def fetch_tokenizer(plan: StagePlan) -> dict[str, Any]:
    """Fetch a stage's tokenizer for use without a network, unless it is there already.

    Args:
        plan: The stage.

    Returns:
        Its description, under the keys of `saved_description`.

    Raises:
        SourceError: It cannot be loaded, or lacks the BOS token that must be prepended.
    """
    wanted = plan.tokenizer
    files, checksums = tokenizer_files(Path(wanted.name)), Checksums(Path(plan.config.results))
    definition = tokenizer_definition(plan)
    as_read = partial(are_unchanged, [files], checksums=checksums)
    if not is_current(plan.tokenizer_folder, definition, as_read):
        reading = Reading(ended=True)
        for file in files or ():
            reading.begin(file)
        try:
            tokenizer = load_tokenizer(
                wanted.name, use_fast=wanted.use_fast, revision=wanted.revision
            )
        except SourceError as error:
            raise SourceError(f"{tokenizer_origin(plan)}: {error}") from error
        bos_ids(tokenizer, wanted.prepend_bos)
        with new_entry(plan.tokenizer_folder) as building:
            _save(tokenizer, building)
            state = None if files is None else [state_of(reading, checksums)]
            meta = {
                "name": wanted.name,
                "fingerprint": _fingerprint(tokenizer),
                "class": type(tokenizer).__name__,
                "prepend_bos": wanted.prepend_bos,
                "vocab_size": len(tokenizer),
                "bos_token_id": tokenizer.bos_token_id,
                "eos_token_id": tokenizer.eos_token_id,
                "definition": definition,
                "revision": wanted.revision,
                "chat_template": _default_template(tokenizer),
                "source": {"state": state},
            }
            write_meta(building, meta, sorted(path.name for path in building.iterdir()))
    return saved_description(read_meta(plan.tokenizer_folder))


def _default_template(tokenizer: AnyTokenizer) -> str | None:
    """Return a tokenizer's own chat template, if it has one."""
    found = tokenizer.chat_template
    found = found.get("default") if isinstance(found, dict) else found
    return str(found) if found else None


def _save(tokenizer: AnyTokenizer, folder: Path) -> None:
    try:
        tokenizer.save_pretrained(folder)
    except Exception as error:  # a full disk: tokenizers has no class of its own for it
        if "os error" in str(error):
            raise OSError(f"{folder}: {error}") from error
        raise


def _fingerprint(tokenizer: AnyTokenizer) -> str:
    """Return the identity of a tokenizer's behaviour on text, wherever it was loaded from.

    It covers vocabulary, merges, normalization, added tokens, BOS and EOS. It does not cover name,
    padding, chat template, or the tokens that the tokenizer would add around a text by itself.
    """
    if tokenizer.is_fast:
        model = json.loads(tokenizer.backend_tokenizer.to_str())
        for unused in ("version", "truncation", "padding", "post_processor"):
            model.pop(unused, None)
    else:
        pieces = getattr(tokenizer, "sp_model", None)
        model = {
            "vocabulary": tokenizer.get_vocab(),
            "added": {str(n): repr(token) for n, token in tokenizer.added_tokens_decoder.items()},
            "sentencepiece": None if pieces is None else pieces.serialized_model_proto().hex(),
        }
    return fingerprint([unordered(model), tokenizer.bos_token_id, tokenizer.eos_token_id])


def load_tokenizer(
    name_or_folder: str | Path, *, use_fast: bool, revision: str | None = None
) -> AnyTokenizer:
    """Load a tokenizer from the hub or a folder.

    transformers 5 makes every sentencepiece model fast and ignores `use_fast`. So `use_fast=False` uses
    the class that runs the model itself, with its own normalization (`legacy`), as transformers 4 does.

    Args:
        name_or_folder: Hub id, or folder.
        use_fast: Whether to load the fast tokenizer.
        revision: The hub's revision; None: `main`.

    Returns:
        The tokenizer, without a limit on the length of texts.

    Raises:
        SourceError: It cannot be loaded.
    """
    name = str(name_or_folder)
    if not Path(name).is_dir() and (name.startswith(("/", ".", "~")) or name.count("/") > 1):
        raise SourceError(f"tokenizer {name}: no such folder; give a hub id or an existing folder")
    with _one_sentence(name):
        _check_plain(Path(name))
        if use_fast:
            tokenizer = AutoTokenizer.from_pretrained(
                name, revision=revision or "main", trust_remote_code=False
            )
        else:
            file = _sentencepiece_file(name, revision)
            tokenizer = SentencePieceBackend.from_pretrained(
                str(file.parent), vocab_file=str(file), legacy=True, trust_remote_code=False
            )
    tokenizer.model_max_length = 10**30  # callers cut texts; a warning of long ones would mislead
    return tokenizer


def _check_plain(folder: Path) -> None:
    """Raise SourceError for files that are not regular, or should be JSON and do not begin so.

    Reading a pipe would block, and errors of transformers do not name the damaged file.
    """
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        is_table = path.name in _TABLES
        try:
            if is_table or (path.exists() and not path.is_dir()):
                check_regular(path)
            if is_table:
                with open_regular(path) as file:
                    begin = file.read(1000).lstrip()
                if not begin.startswith(b"{"):
                    raise SourceError(f"{path}: is not a JSON object; copy the tokenizer again")
        except OSError as error:
            why = f"cannot be read ({error.strerror})"
            raise SourceError(f"{path}: {why}; copy the tokenizer again") from None


def _sentencepiece_file(name: str, revision: str | None) -> Path:
    """Return the sentencepiece model of a local tokenizer, or of one downloaded from the hub."""
    folder = Path(name)
    if not folder.is_dir():
        patterns = [*_SENTENCEPIECE_FILES, "*token*.json"]
        folder = Path(snapshot_download(name, revision=revision, allow_patterns=patterns))
    for file in _SENTENCEPIECE_FILES:
        if (folder / file).is_file():
            return folder / file
    raise SourceError(
        f"tokenizer {name}: `use_fast: false` needs a sentencepiece model, but there is none of "
        f"{', '.join(_SENTENCEPIECE_FILES)}; set `use_fast: true`"
    )


@contextlib.contextmanager
def _one_sentence(name: str) -> Iterator[None]:
    """Turn any error of transformers or the hub into one SourceError."""
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
        reason = " ".join(str(error).split())
        if isinstance(error, GatedRepoError | RepositoryNotFoundError) or "gated repo" in reason:
            why = "it is not on the hub, or not open to you: check the name, or run `hf auth login`"
        elif "trust_remote_code" in reason:
            why = "it needs code of its own (`auto_map`), which is never run; use one without"
        elif isinstance(error, ConnectionError) or re.search(r"connect|offline|outgoing", reason):
            why = "the hub cannot be reached: run prefill where it can, or set `tokenizer.name` to a folder"
        else:
            why = (reason or type(error).__name__)[:300]
        raise SourceError(f"tokenizer {name} cannot be loaded: {why}") from error
