"""Reads the code blocks of an answer, however their fences stand: in lists, in quotes, or within a line."""

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from evaluation.fences import Fence, read_fences
from evaluation.reading.final_answers import END_TOKENS

_PYTHON = re.compile(
    r"(?:(?:ipython|python|py)(?:[ _-]?[23](?:\.\d+)*)?|code|pycon|tool_code)?", re.IGNORECASE
)
_OTHERS = frozenset(
    "bash sh shell console zsh cmd powershell text txt plaintext output out stdout json yaml toml xml "
    "html css md markdown"
    " javascript js typescript ts java c cpp c++ cs go rust ruby sql diff none latex tex math".split()
)
_END_MARK = re.compile(
    END_TOKENS + r"|</s>(?=[ \t]*$)|^[ \t]*\[(?:DONE|END|/PYTHON|/CODE|/INST)\][ \t]*$"
    r"|(?<=\S)\[(?:DONE|END|/PYTHON)\][ \t]*$",
    re.MULTILINE,
)
_BEGIN_MARK = re.compile(
    r"^[ \t]*(?:\[(?:BEGIN|PYTHON|CODE)\]|<(?:code|python)>)[ \t]*$|<\|python_tag\|>"
    r"|\A\s*python3?[ \t]*$(?=\n\s*\S)",
    re.MULTILINE | re.IGNORECASE,
)
_CODE_TAG_END = re.compile(r"^[ \t]*</(?:code|python)>[ \t]*$", re.MULTILINE)
_OPENED_IN_LINE = re.compile(r"(?P<fence>`{3,})(?P<tag>[\w.+ {}]{0,20})")
_MARKERS = " \t>*+-0123456789.)"
"""Characters of quotes and list markers, which may precede a fence in its line."""
_IN_ONE_LINE = re.compile(
    r"^(?P<indent>[ \t>]*)(?P<fence>`{3,})(?P<tag>\w*)[ \t]+(?P<code>\S.*?)(?P=fence)[ \t]*$"
)
_AFTER_TAG = re.compile(
    r"^(?P<opening>[ \t>]*(?:`{3,}|~{3,})[ \t]*\w+)[ \t]+"
    r"(?P<code>(?:def|class|from|import|return|async|@)\b.*)$"
)
_MOST_LINES = 200
"""Lines in which the end of a fence is looked for, if a line of code ends with its sign."""
_FENCE = re.compile(
    r"^[ \t>]*(?:(?:[-*+]|\d{1,3}[.)])[ \t]+)?(?P<sign>`{3,}|~{3,})(?P<info>[^`\n]*)$"
)


@dataclass(frozen=True)
class Block:
    """A code block without its indentation; `start` and `end` are its lines with the fences."""

    tag: str
    content: str
    start: int
    end: int

    @property
    def is_python(self) -> bool:
        """Whether it is tagged as Python, or has no tag."""
        return is_python_tag(self.tag)

    @property
    def may_be_python(self) -> bool:
        """Whether its tag names no other language."""
        return self.tag.casefold() not in _OTHERS


def is_python_tag(tag: str) -> bool:
    """Return whether the tag of a fence means Python: `py3`, `python3.11`, `Python 3`, `code`, or none."""
    return _PYTHON.fullmatch(tag.strip("{}. ")) is not None


def code_text(completion: str) -> str:
    r"""Return a completion with `\n` at the end of lines, from a mark of its beginning to one of its end.

    It is without a byte order mark, and without what follows `[DONE]` or a special token.
    """
    text = completion.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff")
    for mark in _END_MARK.finditer(text):
        if text[: mark.start()].strip():
            text = text[: mark.start()]
            break
    if (begin := _BEGIN_MARK.search(text)) is not None:
        text = text[begin.end() :]
        text = text[: end.start()] if (end := _CODE_TAG_END.search(text)) else text
    return text


def read_blocks(text: str) -> tuple[list[Block], list[str]]:
    """Return the code blocks of a text, and the lines that `start` and `end` refer to."""
    lines = list(_separated(text.split("\n")))
    fences = read_fences("\n".join(lines))
    blocks = [Block(_tag(fence), textwrap.dedent(fence.content), *fence.lines) for fence in fences]
    return blocks, lines


def _tag(fence: Fence) -> str:
    """Return the tag of a fence: `Python 3` has two words."""
    return fence.info if is_python_tag(fence.info) else fence.tag


def at_fences(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield for each line that is a fence the text before it, its tag, and the text after it."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if (fence := _FENCE.match(line)) is not None:
            yield "\n".join(lines[:number]), fence["info"].strip(), "\n".join(lines[number + 1 :])


def _separated(lines: list[str]) -> Iterator[str]:
    """Yield lines so that every fence has a line of its own."""
    sign = ""
    for number, line in enumerate(lines):
        if sign:
            if _closes(line, sign):
                sign = ""
            elif line.rstrip().endswith(sign) and not _closed_later(
                lines[number + 1 : number + 1 + _MOST_LINES], sign
            ):
                yield line.rstrip().removesuffix(sign)
                line, sign = sign, ""
            yield line
            continue
        if (whole := _IN_ONE_LINE.match(line)) is not None:
            indent, fence = whole["indent"], whole["fence"]
            yield from (
                f"{indent}{fence}{whole['tag']}",
                f"{indent}{whole['code']}",
                f"{indent}{fence}",
            )
            continue
        if (place := _opening_in(line)) is not None:
            yield line[:place]
            yield ""
            line = line[place:]
        fence_line = _FENCE.match(line)
        sign = fence_line["sign"] if fence_line else ""
        if (after := _AFTER_TAG.match(line)) is not None:
            yield after["opening"]
            line = after["code"]
        yield line


def _opening_in(line: str) -> int | None:
    """Return where a Python fence opens at the end of a line of text; None if none does."""
    place = line.find("```")
    if place <= 0 or not line[:place].strip(_MARKERS):
        return None
    opened = _OPENED_IN_LINE.fullmatch(line, place)
    return place if opened and is_python_tag(opened["tag"].strip()) else None


def _closes(line: str, sign: str) -> bool:
    mark = line.strip(" \t>")
    return len(mark) >= len(sign) and set(mark) == {sign[0]}


def _closed_later(lines: list[str], sign: str) -> bool:
    """Return whether a line closes the fence before another one opens."""
    for line in lines:
        if _closes(line, sign):
            return True
        if (fence := _FENCE.match(line)) and fence["info"].strip():
            return False
    return False
