"""The tokenizer's entry in the cache: fetched at prefill, described, and read again by every job."""

from functools import partial
from pathlib import Path
from typing import Any

from evaluation.prefill.definitions import (
    saved_description,
    tokenizer_definition,
    tokenizer_files,
)
from evaluation.prefill.entries import is_current, new_entry, read_meta, write_meta
from evaluation.prefill.states import Checksums, Reading, are_unchanged
from evaluation.prefill.tokenizers import (
    AnyTokenizer,
    bos_ids,
    load_tokenizer,
    tokenizer_fingerprint,
)
from evaluation.settings.plan import StagePlan


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
    """Fetch a stage's tokenizer for use without a network, if it is not there.

    Args:
        plan: The stage.

    Returns:
        Its description, as `describe` gives it.

    Raises:
        SourceError: It cannot be loaded, or lacks the BOS that is to be prepended.
    """
    wanted = plan.tokenizer
    files, checksums = tokenizer_files(Path(wanted.name)), Checksums(Path(plan.config.results))
    definition = tokenizer_definition(plan)
    as_read = partial(are_unchanged, [files], checksums=checksums)
    if not is_current(plan.tokenizer_folder, definition, as_read):
        reading = Reading(ended=True)
        for file in files or ():
            reading.begin(file)
        tokenizer = load_tokenizer(wanted.name, use_fast=wanted.use_fast, revision=wanted.revision)
        bos_ids(tokenizer, wanted.prepend_bos)
        with new_entry(plan.tokenizer_folder) as building:
            _save(tokenizer, building)
            names = sorted(path.name for path in building.iterdir())
            meta = describe(tokenizer, wanted.name, wanted.prepend_bos)
            meta |= {"definition": definition, "revision": wanted.revision}
            meta |= {"chat_template": _default_template(tokenizer)}
            state = None if files is None else [reading.state(checksums)]
            write_meta(building, meta | {"source": {"state": state}}, names)
    return saved_description(read_meta(plan.tokenizer_folder))


def _default_template(tokenizer: AnyTokenizer) -> str | None:
    """Return the chat template that a tokenizer brings along, if it does."""
    found = tokenizer.chat_template
    if isinstance(found, dict):
        found = found.get("default")
    return str(found) if found else None


def _save(tokenizer: AnyTokenizer, folder: Path) -> None:
    try:
        tokenizer.save_pretrained(folder)
    except Exception as error:  # a full disk: tokenizers has no class of its own for it
        if "os error" in str(error):
            raise OSError(f"{folder}: {error}") from error
        raise


def describe(tokenizer: AnyTokenizer, name: str, prepend_bos: bool) -> dict[str, Any]:
    """Return what meta.json has of a tokenizer, under the keys of `saved_description`.

    Args:
        tokenizer: The tokenizer, loaded.
        name: Hub id, or folder.
        prepend_bos: Whether BOS is configured to stand before every text.

    Returns:
        Values by key, ready for JSON.
    """
    return {
        "name": name,
        "fingerprint": tokenizer_fingerprint(tokenizer),
        "class": type(tokenizer).__name__,
        "prepend_bos": prepend_bos,
        "vocab_size": len(tokenizer),
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
    }
