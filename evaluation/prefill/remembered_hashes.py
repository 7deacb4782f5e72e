"""Remember hashes of files in a file, each with the status that tells when to read its file again."""

import contextlib
import json
import logging
from collections.abc import Mapping
from pathlib import Path

from evaluation.files import write_json
from evaluation.providers.adapters.mirror_files import FileStamp

log = logging.getLogger(__name__)

Hashes = Mapping[str, tuple[FileStamp, str]]
"""Status and hash of files by name."""


def remembered_hashes(memory: Path) -> dict[str, tuple[FileStamp, str]]:
    """Return the hashes in a file; none where it is missing or damaged."""
    with contextlib.suppress(OSError, ValueError, TypeError, AttributeError, RecursionError):
        content = json.loads(memory.read_text(encoding="utf-8"))
        return {name: (FileStamp(*status), str(found)) for name, (status, found) in content.items()}
    return {}


def remember_hashes(memory: Path, hashes: Hashes, what: str) -> None:
    """Replace the hashes in a file; log that `what` are computed again where this user may not write."""
    try:
        write_json(memory, hashes)
    except OSError as error:
        log.warning(
            "%s cannot be stored and are computed again: %s: %s",
            what, error.filename or memory, error.strerror,
        )  # fmt: skip
