"""Reads Python code that something else surrounds: prose, an unfinished end, prompts of a session."""

import ast
import re
import textwrap
import warnings
from collections.abc import Callable, Iterator

_LONGEST = 300_000
"""Characters of the longest code that is parsed."""
_PARSED = 3_000_000
"""Characters that all attempts for one text may parse."""
_MOST_ATTEMPTS = 60

_INVISIBLE = re.compile("[\u200b-\u200f\u2060\ufeff\u00ad]")
_CODE_LINE = re.compile(
    r"(?:def|class|async|from|import|if|elif|else|for|while|try|except|finally|with|return|print|assert"
    r"|raise|del|global)\b"
    r"(?=.*[:=()\[\]'\"]|\s+\w+$|$)|@\w|[\w.\[\]'\", ]+\s*(?:[-+*/%|&^]|//|\*\*)?=(?!=)|[\w.]+\("
)
_START = re.compile(
    r"[ \t]*(?:from[ \t]+[\w.]+[ \t]+import\b|import[ \t]+\w|(?:async[ \t]+)?def[ \t]+\w+"
    r"|class[ \t]+\w+[ \t]*[(:]|@\w)"
)
_SESSION = re.compile(r"[ \t]*(?:>>>|\.\.\.)(?: |$)")

Wrap = Callable[[str], str]
"""Returns the whole source that a piece of code is a part of."""


def parsed(source: str) -> ast.Module | None:
    """Return the syntax tree of some code; None if it is not valid."""
    if len(source) > _LONGEST:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ignores warnings about backslashes in strings
        try:
            return ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def valid_part(code: str, wrap: Wrap, *, may_be_prose: bool) -> str | None:
    """Return the valid code of a text, without what is certainly not code; None if there is none.

    Args:
        wrap: Puts code into the source that is parsed.
        may_be_prose: Whether prose may surround the code.
    """
    if len(code) > _LONGEST:
        return None
    for text in _spellings(code):
        if parsed(wrap(text)) is not None:
            return text
    for text in _spellings(code):
        if (part := _without_tail(text, wrap)) is not None:
            return part
    if not may_be_prose:
        return None
    for text in _from_its_start(code):
        for spelled in _spellings(text):
            if parsed(wrap(spelled)) is not None:
                return spelled
            if (part := _without_tail(spelled, wrap)) is not None:
                return part
    return None


def _spellings(code: str) -> Iterator[str]:
    """Yield a code as it is, then without invisible characters, and without prompts of a session."""
    yield code
    visible = _INVISIBLE.sub("", code).replace("\u00a0", " ").replace("\u3000", "  ")
    if visible != code:
        yield visible
    dedented = textwrap.dedent(visible).lstrip("\n")
    if dedented != code and _START.match(dedented):
        yield dedented
    if dedented.startswith(">>>"):
        lines = [line for line in dedented.split("\n") if _SESSION.match(line)]
        yield "\n".join(re.sub(r"^[ \t]*(?:>>>|\.\.\.) ?", "", line) for line in lines)


def _without_tail(code: str, wrap: Wrap) -> str | None:
    """Return the longest valid beginning of some code, if what follows is prose or breaks off."""
    lines = code.split("\n")
    starts = [
        number
        for number, line in enumerate(lines)
        if number and line[:1].strip() and line[0].isprintable() and line[0] not in ")]}"
    ]
    attempts = max(3, min(_MOST_ATTEMPTS, _PARSED // (len(code) + 1)))
    for start in reversed(starts[-attempts:]):
        part = "\n".join(lines[:start]) + "\n"
        if part.strip() and parsed(wrap(part)) is not None:
            is_last = start == starts[-1] or _is_open(lines[start:])
            return part if is_last or not _CODE_LINE.match(lines[start]) else None
    return None


def _is_open(tail: list[str]) -> bool:
    """Return whether a tail breaks off in a string that no line ends."""
    text = "\n".join(tail)
    return any(text.count(quotes) % 2 for quotes in ('"""', "'''"))


def _from_its_start(text: str) -> Iterator[str]:
    """Yield the text from each of the first lines that begin code, without their indentation."""
    lines = text.split("\n")
    starts = [number for number, line in enumerate(lines) if _START.match(line)]
    for start in starts[:5]:
        indent = len(lines[start]) - len(lines[start].lstrip())
        end = next(
            (
                number
                for number in range(start + 1, len(lines))
                if indent and lines[number].strip() and not lines[number][:indent].isspace()
            ),
            len(lines),
        )
        yield textwrap.dedent("\n".join(lines[start:end]))
