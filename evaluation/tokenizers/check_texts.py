"""The texts of the self-check: those that tokenizers treat differently, and the user's own."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.errors import ConfigError
from evaluation.files import read_json, read_lines

PROGRAM = "def f(x):\n    if x:\n        return 1\n"

_PLAIN = (
    "",
    "a",
    "Hello world",
    " Hello",
    "the quick brown fox; Don't panic!",
    *(f"{' ' * count}return x" for count in range(1, 9)),
    "\tif x:\n\t\treturn [1, 2]",
    PROGRAM,
    "one\ntwo\r\nthree\n\n\nfour",
    "1234567890 3.14159 2,048 0x1F",
    "🦊 👩‍👩‍👧‍👦 🇩🇪",
    "日本語のテキスト 中文文本",
    "مرحبا بالعالم",
    "e\u0301 a\u0308 \u00e9 \u00e4",
    "ﬁ ① ½ Å K",
    "trailing  ",
    "  both ends  ",
    "<|im_start|>user\nhi there<|im_end|>\n<|im_start|>assistant\n",
    "[INST] hi [/INST]",
    "a\u00a0b\u200bc\u3000d",
    "x = {'a': [1, 2]}  # comment",
)

ANSWERS = (" Paris", "Paris", "    return x + 1\n", "\n\n  x", "日本 🦊", "\tx\r\n", "  two")
"""Answers that are decoded behind a prompt."""

PROMPTS = ("def f(x):\n", "Question: who?\nAnswer:", "日本語 🦊", "a")


@dataclass(frozen=True)
class OwnText:
    """A text of the user's, with its ids where they are given; `place` is its file and line."""

    place: str
    text: str
    ids: tuple[int, ...] | None


def texts_with(special: list[str]) -> list[str]:
    """Return the texts, together with some that hold a tokenizer's BOS and EOS."""
    inside = [text for token in special for text in (f"{token}Hello", f"Hello {token} x{token}\n")]
    return [*_PLAIN, *inside]


def read_texts(path: Path) -> list[OwnText]:
    """Return the texts of a JSONL file: each line is a text, or an object with `text` and `ids`.

    Raises:
        ConfigError: When a line is something else; it is named.
    """
    return list(_read(path))


def _read(path: Path) -> Iterator[OwnText]:
    expected = "a JSONL file, each line a text or an object with `text` and `ids`"
    for number, line in read_lines(path, ConfigError, expected):
        place = f"tokenizer.check_texts: {path}: line {number}"
        if not line.strip():
            continue
        value = read_json(line, place, ConfigError)
        fields: Any = {"text": value} if isinstance(value, str) else value
        if not _is_right(fields):
            shown = json.dumps(value, ensure_ascii=False)[:60]
            raise ConfigError(f"{place}: is {shown}; write {expected.partition(', ')[2]}")
        ids = fields.get("ids")
        yield OwnText(place, fields["text"], None if ids is None else tuple(ids))


def _is_right(fields: Any) -> bool:
    if not isinstance(fields, dict) or not fields.keys() <= {"text", "ids"}:
        return False
    ids = fields.get("ids", [])
    are_ids = isinstance(ids, list) and all(type(one) is int for one in ids)
    return isinstance(fields.get("text"), str) and are_ids
