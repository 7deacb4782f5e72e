"""Fingerprints of settings and checksums of files, which show from what a result was made."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evaluation.files import as_utf8


def fingerprint(content: Any) -> str:
    """Return the fingerprint of a JSON value; it depends on the order of keys.

    The order can matter: variables are computed in order, and the first verifier may be the primary
    one. If the order of a mapping does not matter, pass it through `unordered`.
    """
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(as_utf8(text)).hexdigest()[:16]


def unordered(content: Any) -> Any:
    """Return a JSON value with the keys of all its mappings sorted; lists keep their order."""
    if isinstance(content, Mapping):
        return {key: unordered(content[key]) for key in sorted(content)}
    return [unordered(one) for one in content] if isinstance(content, list | tuple) else content


def file_checksum(path: Path) -> str:
    """Return the SHA-256 of a file in hex."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
