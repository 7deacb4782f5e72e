"""Read files of requests, and check every row.

A row has either two strings, `context` and `continuation`, or two lists of token ids,
`context_tokens` and `continuation_tokens`, and no other key.
"""

from pathlib import Path
from typing import Any

from evaluation.errors import ScoringError, kind_of
from evaluation.files import is_unicode, read_json, read_lines

TEXT = {"context", "continuation"}
TOKENS = {"context_tokens", "continuation_tokens"}

RequestRow = dict[str, Any]


def read_rows(path: Path) -> list[RequestRow]:
    """Read and check every line of a file of requests: at least one.

    Raises:
        ScoringError: When there is no row, or a row is wrong; it names the first such line.
    """
    lines = read_lines(path, ScoringError, "JSONL, one request on each line")
    rows = [_checked(line, f"{path}: line {number}") for number, line in lines]
    if not rows:
        raise ScoringError(f"{path}: holds no requests; give JSONL, one object on each line")
    return rows


def _checked(line: bytes, place: str) -> RequestRow:
    row = read_json(line, place, ScoringError)
    if not isinstance(row, dict) or row.keys() not in (TEXT, TOKENS):
        raise ScoringError(
            f"{place}: expected the keys context and continuation, or context_tokens and "
            f"continuation_tokens, and no others; found {_found(row)}"
        )
    is_right = _is_text if row.keys() == TEXT else _is_tokens
    for key, value in row.items():
        if not is_right(value):
            kind = "a string of Unicode characters" if row.keys() == TEXT else "a list of token ids"
            raise ScoringError(f"{place}: {key} must be {kind}")
        if not value and key.startswith("continuation"):
            raise ScoringError(f"{place}: {key} is empty, there is nothing to score; leave it out")
    return row


def _found(row: Any) -> str:
    """Return the keys of a row, or its kind, shortened: a key can be as long as the file."""
    if not isinstance(row, dict):
        return kind_of(row)
    names = [name[:40] for name in list(row)[:5]] + ["…"] * (len(row) > 5)
    return ", ".join(names) or "none"


def _is_text(value: Any) -> bool:
    """Return whether a value is a string that a tokenizer takes."""
    return isinstance(value, str) and is_unicode(value)


def _is_tokens(value: Any) -> bool:
    return isinstance(value, list) and all(type(token) is int and token >= 0 for token in value)
