"""Reads lists of an answer with a Markdown parser.

People and models also write lists that CommonMark does not accept: other bullet signs, `(1)`, a bold
number, a list that starts at 4 directly below a line. Such lines are first converted to CommonMark;
code blocks are not changed.
"""

import re
from dataclasses import dataclass, field
from functools import lru_cache

from evaluation.reading.text import plain, without_emphasis
from evaluation.verification.fences import PARSER, closes

_SPACED = "-*+–—·✓✔➢➤►▶→"
_UNMISTAKABLE = "•●○◦∙■□▪▫‣⁃◆◇・"
_BULLET = re.compile(rf"([ \t]*)(?:[{_SPACED}](?=[ \t])|[{_UNMISTAKABLE}])[ \t]*(\S.*)")
_NUMBER = re.compile(
    r"([ \t]*)(?:(\*\*|__)?\(?(\d{1,4})\\?[.)](\*\*|__)?[ \t]+|()(\d{1,2})\u20e3()[ \t]*)(\S.*)"
)
_RULE = re.compile(r"[ \t]*([-*_])[ \t]*(?:\1[ \t]*){2,}")
_FENCE = re.compile(r"[ \t]*(?P<sign>`{3,}|~{3,})(?P<info>.*)")
_NO_WORD = " \t*_`~\"'.,:;-–—"


@dataclass(frozen=True)
class Line:
    """A line that is a list item: its indentation, number (None for a bullet) and text."""

    indent: str
    number: int | None
    text: str


@dataclass(frozen=True)
class ListItem:
    """An item of a list: its number (None for a bullet), its nesting, and its text.

    `level` counts all enclosing items, `depth` only those with the same kind of marker.
    """

    number: int | None
    level: int
    depth: int
    texts: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The item's text on one line, without emphasis."""
        return without_emphasis(" ".join(self.texts)).strip()


@dataclass(frozen=True)
class Lists:
    """All list items of an answer, and whether it has text outside of them."""

    items: tuple[ListItem, ...]
    anything_else: bool

    def outermost(self, *, numbered: bool) -> list[ListItem]:
        """Return the outermost items that have numbers, or those that have bullets."""
        return [
            item for item in self.items if item.depth == 0 and (item.number is not None) == numbered
        ]


def read_item(line: str) -> Line | None:
    """Read a line as a list item; None if it is not one."""
    line = line.rstrip()
    if _RULE.fullmatch(line):
        return None
    if match := _BULLET.fullmatch(line):
        return Line(match[1], None, match[2])
    if match := _NUMBER.fullmatch(line):
        opened = match[2] if match[2] and not match[4] else ""
        return Line(match[1], int(match[3] or match[6]), opened + match[8])
    return None


def _as_commonmark(text: str) -> str:
    """Return a text with CommonMark's list markers, and a blank line before each list."""
    written: list[str] = []
    fence, before = "", ""
    for line in text.split("\n"):
        mark = _FENCE.fullmatch(line)
        item = None if fence or mark else read_item(line)
        if item:
            marker = "-" if item.number is None else f"{item.number}."
            line = f"{item.indent}{marker} {item.text}"
        if fence:
            fence = "" if closes(line, fence) else fence
        elif mark:
            fence = mark["sign"]
        elif before.strip() and (item or _leaves_a_list(before, line)):
            written.append("")
        written.append(line)
        before = line
    return "\n".join(written)


def _leaves_a_list(before: str, line: str) -> bool:
    """Return whether CommonMark would add an unindented line to the list item above it."""
    in_list = before[:1] in (" ", "\t") or read_item(before) is not None
    return in_list and line[:1] not in (" ", "\t", "")


@lru_cache(maxsize=16)
def read_lists(text: str) -> Lists:
    """Return the list items of an answer in order, without those that have no words."""
    items: list[ListItem] = []
    open_items: list[ListItem] = []
    anything_else = False
    for token in PARSER.parse(_as_commonmark(plain(text))):
        if token.type == "list_item_open":
            number = int(token.info) if token.info else None
            depth = sum((list_item.number is None) == (number is None) for list_item in open_items)
            open_items.append(ListItem(number, len(open_items), depth))
            items.append(open_items[-1])
        elif token.type == "list_item_close":
            open_items.pop()
        elif token.content.strip() or token.type in ("hr", "blockquote_open"):
            if open_items:
                open_items[-1].texts.append(token.content)
            else:
                anything_else = True
    return Lists(tuple(item for item in items if item.text.strip(_NO_WORD)), anything_else)
