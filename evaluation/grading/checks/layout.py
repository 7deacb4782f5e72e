"""Lists, lengths and letters of an answer."""

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

_ITEM = re.compile(
    r"(?P<indent>[ \t]*)"
    r"(?:(?P<bullet>[-*+•◦▪‣–])|(?:\*\*)?(?P<number>\d{1,4})[.)](?:\*\*)?)"
    r"[ \t]+(?P<text>\S.*)"
)
_SENTENCE_END = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’)\]*]*+(?=\s|$)")
_ABBREVIATIONS = frozenset(
    (
        "mr",
        "mrs",
        "ms",
        "dr",
        "prof",
        "st",
        "jr",
        "sr",
        "vs",
        "e.g",
        "i.e",
        "u.s",
        "u.k",
        "a.m",
        "p.m",
    )
)


@dataclass(frozen=True)
class Item:
    """One line of a list: its indentation, its number if it has one, and what it says."""

    indent: int
    number: int | None
    text: str


def read_item(line: str) -> Item | None:
    """The list item that a line is; None if it is none."""
    found = _ITEM.fullmatch(line.rstrip())
    if not found:
        return None
    number = int(found["number"]) if found["number"] else None
    return Item(len(found["indent"].expandtabs(4)), number, found["text"])


def _outermost(text: str, *, numbered: bool) -> list[Item]:
    """The items of one marker that no other item of it encloses."""
    read = [read_item(line) for line in text.splitlines()]
    items = [item for item in read if item and (item.number is not None) == numbered]
    outer = min((item.indent for item in items), default=0)
    return [item for item in items if item.indent == outer]


def bullet_count(text: str) -> int:
    return len(_outermost(text, numbered=False))


def numbered_count(text: str) -> int:
    return len(_outermost(text, numbered=True))


def numbers_in_order(text: str, start: int) -> bool:
    numbers = [item.number for item in _outermost(text, numbered=True)]
    return bool(numbers) and numbers == list(range(start, start + len(numbers)))


def only_list(text: str, marker: Literal["bullets", "numbers"]) -> bool:
    """Every line is an item of the list, or is indented and so belongs to one."""
    lines = [line for line in text.splitlines() if line.strip()]
    numbered = marker == "numbers"
    first = read_item(lines[0]) if lines else None
    if first is None or (first.number is not None) != numbered:
        return False
    for line in lines:
        item = read_item(line)
        own = item is not None and (item.number is not None) == numbered
        if not own and not line.startswith((" ", "\t")):
            return False
    return True


def _items(text: str) -> list[Item]:
    return [item for line in text.splitlines() if (item := read_item(line))]


def item_words(text: str, at_most: int) -> bool:
    items = _items(text)
    return bool(items) and all(word_count(item.text) <= at_most for item in items)


def sorted_items(text: str) -> bool:
    said = [item.text.strip("*_`\"' ").casefold() for item in _items(text)]
    return len(said) > 1 and all(one <= other for one, other in pairwise(said))


def _without_marker(line: str) -> str:
    item = read_item(line)
    return item.text if item else line


def word_count(text: str) -> int:
    """Pieces between spaces that hold a letter or digit; list markers are not words."""
    words = " ".join(_without_marker(line) for line in text.splitlines()).split()
    return sum(any(char.isalnum() for char in word) for word in words)


def sentence_count(text: str) -> int:
    """Sentences; a list item or paragraph without a full stop is one, an abbreviation ends none."""
    return sum(_sentences_in(paragraph) for paragraph in _paragraphs(text))


def _paragraphs(text: str) -> list[str]:
    """Paragraphs and list items, each on one line."""
    paragraphs = [""]
    for line in text.splitlines():
        if not line.strip() or read_item(line):
            paragraphs.append("")
        paragraphs[-1] += " " + _without_marker(line).strip()
    return [paragraph.strip() for paragraph in paragraphs if word_count(paragraph)]


def _sentences_in(paragraph: str) -> int:
    ends = [found.end() for found in _SENTENCE_END.finditer(paragraph) if _ends(paragraph, found)]
    rest = paragraph[ends[-1] :] if ends else paragraph
    return len(ends) + (word_count(rest) > 0)


def _ends(paragraph: str, found: re.Match[str]) -> bool:
    """Whether a full stop ends a sentence, rather than `Dr.`, an initial or `e.g. this`."""
    after = paragraph[found.end() :].lstrip()
    before = paragraph[: found.start()].split()
    word = before[-1].lstrip("(\"'“‘*").casefold() if before else ""
    short = word in _ABBREVIATIONS or (len(word) == 1 and word.isalpha() and word != "i")
    if not after:
        return True
    return not (after[0].islower() or (short and found.group().startswith(".")))


def line_count(text: str) -> int:
    return sum(bool(line.strip()) for line in text.splitlines())


def letter_case(text: str, case: Literal["lower", "upper"]) -> bool:
    return text.islower() if case == "lower" else text.isupper()


def starts_with(text: str, starts: str) -> bool:
    return text.strip().startswith(starts)


def ends_with(text: str, ends: str) -> bool:
    return text.strip().endswith(ends)
