r"""Reads the boxes of an answer: `\boxed{…}`, `\fbox{…}`, `\boxed 5` and `\boxed\frac12`."""

import re
from dataclasses import dataclass

from evaluation.reading.formula_tokens import JOINING

_BOX = re.compile(r"\\(?:boxed|fbox|framebox)(?![A-Za-z])[ \t]*")
_SHORT = re.compile(r"\\frac\s*(?:\d\s*\d|\d?\s*\{[^{}]*\}\s*(?:\{[^{}]*\}|\d))|\\?[\w.,]+%?")
_EMPTY = re.compile(
    r"(?:\\text(?:bf|it)?\{)?[\s.…_?]*(?:(?:your|the|my)?\s*(?:final\s*)?"
    r"(?:answer|ANSWER|Answer|result)\s*(?:here)?)?[\s.…_?]*\}?|\\[cl]?dots"
)
_SPACE = re.compile(r"\\(?:[ ,;:!]|q?quad(?![a-z]))")
_BETWEEN_PARTS = re.compile(
    r"[\s$]*(?:\\[\])(\[])?[\s$]*[,;，；、]?\s*(?:&|\\text\{\s*(?:and|or)\s*\}"
    rf"|(?:{JOINING})(?![A-Za-z]))?[\s$]*(?:\\[\])(\[])?[\s$]*(?:[A-Za-z](?:_\{{?\d\}}?)?\s*=)?[\s$]*",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Box:
    """The content of a box, and the place of the whole box in the text."""

    content: str
    start: int
    end: int


def read_boxes(text: str) -> list[Box]:
    """Return the closed boxes that hold an answer, in order; of nested ones the innermost."""
    boxes = []
    for match in _BOX.finditer(text):
        if (box := _read(text, match)) is None or _EMPTY.fullmatch(box.content.strip()):
            continue
        if not _BOX.search(box.content):
            boxes.append(box)
    return boxes


def last_box(text: str) -> tuple[str, int] | None:
    r"""Return what the last box holds, with the boxes that one statement joins to it.

    `\boxed{1}` and `\boxed{2}` in `$x=\boxed{1}$ or $x=\boxed{2}$` are one answer `1, 2`. A box that is
    corrected later does not count.

    Returns:
        The content and where it ends; None if there is no box.
    """
    boxes = read_boxes(text)
    if not boxes:
        return None
    parts = [boxes[-1]]
    for box in reversed(boxes[:-1]):
        between = _SPACE.sub(" ", text[box.end : parts[0].start])
        if not between.strip(" \n$") or not _BETWEEN_PARTS.fullmatch(between):
            break
        parts.insert(0, box)
    contents = list(dict.fromkeys(part.content.strip() for part in parts))
    return ", ".join(contents), boxes[-1].end


def ends_in_box(text: str) -> bool:
    r"""Return whether a text breaks off in a box before its content is whole, as in `\boxed{\frac{`."""
    last = None
    for last in _BOX.finditer(text):  # noqa: B007 - the last one
        pass
    if last is None or text[last.end() : last.end() + 1] != "{" or closing(text, last.end()):
        return False
    inside = text[last.end() + 1 :].strip()
    return not inside or inside.count("{") > inside.count("}") or inside[-1] in "+-*/^_\\=(,"


def _read(text: str, match: re.Match[str]) -> Box | None:
    begin = match.end()
    if text[begin : begin + 1] == "{":
        end = closing(text, begin)
        return None if end is None else Box(text[begin + 1 : end], match.start(), end + 1)
    short = _SHORT.match(text, begin)
    return Box(short.group().rstrip("."), match.start(), short.end()) if short else None


_BRACES = re.compile(r"\\.|[{}]", re.DOTALL)


def closing(text: str, begin: int) -> int | None:
    """Return where the brace at `begin` is closed; None if it is not. Escaped braces do not count."""
    depth = 0
    for brace in _BRACES.finditer(text, begin):
        depth += {"{": 1, "}": -1}.get(brace.group(), 0)
        if depth == 0:
            return brace.start()
    return None
