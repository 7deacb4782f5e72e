"""Reads lists and code blocks of an answer with a Markdown parser.

People and models also write lists that CommonMark does not accept: other bullet signs, `(1)`, a bold
number, a list that starts at 4 directly below a line. Such lines are first converted to CommonMark;
code blocks are not changed.
"""

import re
from dataclasses import dataclass, field
from functools import lru_cache

from markdown_it import MarkdownIt
from markdown_it.token import Token

from evaluation.reading.text import plain, without_emphasis

_SPACED = "-*+–—·✓✔➢➤►▶→"
_UNMISTAKABLE = "•●○◦∙■□▪▫‣⁃◆◇・"
_BULLET = re.compile(rf"([ \t]*)(?:[{_SPACED}](?=[ \t])|[{_UNMISTAKABLE}])[ \t]*(\S.*)")
_NUMBER = re.compile(
    r"([ \t]*)(?:(\*\*|__)?\(?(\d{1,4})\\?[.)](\*\*|__)?[ \t]+|()(\d{1,2})\u20e3()[ \t]*)(\S.*)"
)
_RULE = re.compile(r"[ \t]*([-*_])[ \t]*(?:\1[ \t]*){2,}")
_FENCE = re.compile(r"[ \t]*(?P<sign>`{3,}|~{3,})(?P<info>.*)")
_NO_WORD = " \t*_`~\"'.,:;-–—"

_NESTED = 40
"""Levels of quotes and lists that are read; the parser ignores deeper ones."""


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


@dataclass(frozen=True)
class Fence:
    """A fenced code block: tag, text after the fence, content, lines (first, end), whether it is closed."""

    tag: str
    info: str
    content: str
    lines: tuple[int, int]
    closed: bool


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


def _parser() -> MarkdownIt:
    """Return a parser that reads only blocks: parsing many brackets within lines would be slow."""
    parser = MarkdownIt("commonmark", {"maxNesting": _NESTED})
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser.disable(["code", "html_block", "reference"])


_PARSER = _parser()


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
            fence = "" if _closes(line, fence) else fence
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


def _closes(line: str, sign: str) -> bool:
    mark = line.strip()
    return len(mark) >= len(sign) and set(mark) == set(sign)


@lru_cache(maxsize=16)
def read_lists(text: str) -> Lists:
    """Return the list items of an answer in order, without those that have no words."""
    items: list[ListItem] = []
    open_items: list[ListItem] = []
    anything_else = False
    for token in _PARSER.parse(_as_commonmark(plain(text))):
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


@lru_cache(maxsize=16)
def read_fences(text: str) -> tuple[Fence, ...]:
    """Return the fenced code blocks of an answer, as they are written."""
    lines = text.split("\n")
    return tuple(_fence(token, lines) for token in _PARSER.parse(text) if token.type == "fence")


def whole_fence(text: str) -> Fence | None:
    """Return the closed fence that is the whole answer; None if there is other text."""
    fences = read_fences(text.strip())
    lines = text.strip().count("\n") + 1
    if len(fences) != 1 or not fences[0].closed or fences[0].lines != (0, lines):
        return None
    return fences[0]


def _fence(token: Token, lines: list[str]) -> Fence:
    first, end = token.map or [0, 0]
    closed = end - first > 1 and _closes(lines[end - 1].lstrip(" \t>"), token.markup)
    tag = token.info.strip().split(maxsplit=1)[0] if token.info.strip() else ""
    return Fence(
        tag.strip("{}.").casefold(), token.info.strip(), token.content, (first, end), closed
    )
