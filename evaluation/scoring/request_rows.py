"""Files of requests, in JSONL: read once, line by line, every row checked.

A row holds either two strings, `context` and `continuation`, or two lists of token ids,
`context_tokens` and `continuation_tokens`, and nothing else.
"""

from pathlib import Path
from typing import Any

from evaluation.errors import ScoringError
from evaluation.input_files import read_json, read_lines
from evaluation.wording import kind_of

TEXT = {"context", "continuation"}
TOKENS = {"context_tokens", "continuation_tokens"}

Row = dict[str, Any]


def read_rows(path: Path) -> list[Row]:
    """Reads and checks every line; raises ScoringError naming the first that is wrong."""
    lines = read_lines(path, ScoringError, "JSONL, one request on each line")
    rows = [_checked(line, f"{path}: line {number}") for number, line in lines]
    if not rows:
        raise ScoringError(
            f"{path}: holds no requests; give JSONL, one object on each line (a pipe is empty where "
            "the program before it failed)"
        )
    return rows


def _checked(line: bytes, place: str) -> Row:
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
    """What stands in a line, shortened: a key can be as long as the file."""
    if not isinstance(row, dict):
        return kind_of(row)
    names = [name[:40] for name in list(row)[:5]] + ["…"] * (len(row) > 5)
    return ", ".join(names) or "none"


def _is_text(value: Any) -> bool:
    """Whether it is a string without halves of surrogate pairs, which no tokenizer takes."""
    return isinstance(value, str) and not any("\ud800" <= char <= "\udfff" for char in value)


def _is_tokens(value: Any) -> bool:
    return isinstance(value, list) and all(type(token) is int and token >= 0 for token in value)
