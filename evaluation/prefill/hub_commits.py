"""The commits of datasets on the hub: which one prefill got, and whether it is another than before."""

import json
import logging
from pathlib import Path

from evaluation.errors import CacheError, with_class
from evaluation.files import write_json
from evaluation.prefill.sources import hub_failures
from evaluation.settings.sources import Source

log = logging.getLogger(__name__)

COMMITS = "hub_commits"
"""Folder inside the configured `cache`: a file for each dataset, shared by all tokenizers."""


def resolved_commit(source: Source) -> str | None:
    """Return the commit that a dataset's revision points at now; None, with a warning, on failure."""
    from huggingface_hub import HfApi

    try:
        return HfApi().dataset_info(str(source.dataset), revision=source.revision).sha
    except hub_failures() as error:
        log.warning("%s: its commit is not recorded: %s", source.dataset, with_class(error))
        return None


def note_commit(folder: Path, source: Source, commit: str) -> None:
    """Store the commit that a dataset was read at; log a warning if an earlier prefill got another."""
    path = folder / f"{str(source.dataset).replace('/', '--')}.json"
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        stored = {}
    except ValueError as error:
        raise CacheError(f"{path} is damaged ({error}); delete it") from None
    revision = source.revision or "main"
    before = stored.get(revision, commit)
    if before != commit:
        log.warning(
            "%s: %s is commit %s now, and was %s in an earlier prefill, so results from both may be of "
            "different rows; to get the earlier ones, set `revision: %s` for its items in the suite, or "
            "under `overrides` of a suite that extends it",
            *(source.dataset, revision, commit, before, before),
        )
    if stored.get(revision) != commit:
        folder.mkdir(parents=True, exist_ok=True)
        write_json(path, {**stored, revision: commit})
