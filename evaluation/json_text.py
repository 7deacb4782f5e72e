"""Reads JSON strictly: in UTF-8 only, and without repeated keys; finds text that no file can hold."""

import json
from collections import Counter
from typing import Any


def load_json(text: str | bytes, *, finite: bool = False) -> Any:
    """Return the value of a JSON text.

    Args:
        finite: Whether to refuse NaN and Infinity, which are not valid JSON.

    Raises:
        ValueError: When it is not valid JSON, repeats a key, is nested too deeply, or
            (UnicodeDecodeError) is not UTF-8.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8-sig")  # Windows begins a file with a byte-order mark
    try:
        return json.loads(
            text, object_pairs_hook=_unique, parse_constant=_no_number if finite else None
        )
    except RecursionError:
        raise ValueError("nested too deeply") from None


def is_unicode(text: str) -> bool:
    """Return whether a text can be encoded: JSON and YAML can spell half a UTF-16 pair (`\\ud800`)."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        twice = next(key for key, count in counts.items() if count > 1)
        raise ValueError(f"the key {twice[:40]!r} appears twice")
    return table


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is not a number in JSON")
