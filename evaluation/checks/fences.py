"""Reads fenced code blocks of an answer with a Markdown parser."""

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

_NESTED = 40
"""Levels of quotes and lists that are read; the parser ignores deeper ones."""


@cache
def _parser() -> Any:
    """Return a parser that reads only blocks: parsing many brackets within lines would be slow.

    It is imported here, since whatever reads a suite imports this module.
    """
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"maxNesting": _NESTED})
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser.disable(["code", "html_block", "reference"])


@dataclass(frozen=True)
class Fence:
    """A fenced code block: tag, text after the fence, content, lines (first, end), whether it is closed."""

    tag: str
    info: str
    content: str
    lines: tuple[int, int]
    closed: bool


def closes(line: str, sign: str) -> bool:
    """Return whether a line closes a fence that this sign opened."""
    mark = line.strip()
    return len(mark) >= len(sign) and set(mark) == set(sign)


@lru_cache(maxsize=16)
def read_fences(text: str) -> tuple[Fence, ...]:
    """Return the fenced code blocks of an answer, as they are written."""
    if "```" not in text and "~~~" not in text:
        return ()  # most answers have none, and parsing takes long
    lines = text.split("\n")
    return tuple(_fence(token, lines) for token in _parser().parse(text) if token.type == "fence")


def whole_fence(text: str) -> Fence | None:
    """Return the closed fence that is the whole answer; None if there is other text."""
    fences = read_fences(text.strip())
    lines = text.strip().count("\n") + 1
    if len(fences) != 1 or not fences[0].closed or fences[0].lines != (0, lines):
        return None
    return fences[0]


def _fence(token: Any, lines: list[str]) -> Fence:
    first, end = token.map or [0, 0]
    closed = end - first > 1 and closes(lines[end - 1].lstrip(" \t>"), token.markup)
    tag = token.info.strip().split(maxsplit=1)[0] if token.info.strip() else ""
    return Fence(
        tag.strip("{}.").casefold(), token.info.strip(), token.content, (first, end), closed
    )
