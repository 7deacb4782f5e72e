"""An answer's text as people see it, and its words and sentences."""

import re
import unicodedata
from functools import lru_cache

_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff"
    "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]"
)
"""Unicode's default-ignorable characters, and control characters that end no line."""
_LINE_END = re.compile("\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_SPELLINGS = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′ʼ´", "'"),
        **dict.fromkeys("“”„‟″«»", '"'),
        **dict.fromkeys("‐‑‒−", "-"),
        **{sign: f"^{digit}" for digit, sign in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")},
        **{chr(0x245F + number): f"({number})" for number in range(1, 21)},
    }
)
"""Characters that NFKC would change in meaning (10² to 102, ① to 1), or would not unify."""


@lru_cache(maxsize=16)
def plain(text: str) -> str:
    r"""Return a text in NFKC with straight quotes, `\n` and no invisible characters."""
    lines = _LINE_END.sub("\n", _INVISIBLE.sub("", text))
    return unicodedata.normalize("NFKC", lines.translate(_SPELLINGS)).translate(_SPELLINGS)


_EMPHASIS = re.compile(r"[*`]+|~~|(?<![^\W_])_+|_+(?![^\W_])")


def without_emphasis(text: str) -> str:
    """Return a text without Markdown's signs for bold, italics and code; `snake_case` stays."""
    return _EMPHASIS.sub("", text)


def core(text: str) -> str:
    """Return a short answer without case, accents, spacing, quotes, emphasis and final punctuation."""
    apart = unicodedata.normalize("NFKD", without_emphasis(plain(text)))
    letters = "".join(char for char in apart if not unicodedata.combining(char))
    return " ".join(letters.casefold().split()).strip("\"' ").rstrip(".!。,;").strip("\"' ")


WITHOUT_SPACES = (
    "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
"""Characters of scripts without spaces between words (Chinese, Japanese, Thai …), for a class."""
_IDEOGRAPH = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_DASHES = re.compile(r"(?<=\D)[–—]+|[–—]+(?=\D)|-{2,}|\.{3,}")
_WORD = re.compile(r"[^\W_]")


def words(text: str) -> list[str]:
    """Return the pieces between spaces or dashes that have a letter or digit; an ideograph is a word."""
    spaced = _IDEOGRAPH.sub(lambda found: f" {found[0]} ", _DASHES.sub(" ", plain(text)))
    return [piece for piece in spaced.split() if _WORD.search(piece)]


ITEM = re.compile(
    r"(?P<indent>[ \t]*)(?:(?:[-*+–—·✓✔➢➤►▶→](?=[ \t])|[•●○◦∙■□▪▫‣⁃◆◇・])"
    r"|(?:\*\*|__)?\(?(?P<number>\d{1,4})(?:\\?[.)](?:\*\*|__)?(?=[ \t])|\u20e3))[ \t]*(?P<text>\S.*)"
)
"""A line that is an item of a list, without the spaces at its end."""


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs and list items of a text, each on one line without its marker."""
    parts: list[list[str]] = [[]]
    for line in plain(text).split("\n"):
        item = ITEM.fullmatch(line.rstrip())
        if item or not line.strip():
            parts.append([])
        parts[-1].append(item["text"] if item else line.strip())
    return [" ".join(part) for part in parts if any(part)]


_SENTENCE_END = re.compile(r"(?<![.!?])[.!?]++[\"')\]*_]*+(?=\s|$)|。")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\"'])(?:[^\W\di]|mr|mrs|ms|dr|prof|st|jr|sr|vs|etc|approx|fig|ca|max|min|e\.g|i\.e|u\.s"
    r"|u\.k|a\.m|p\.m)\Z",
    re.IGNORECASE,
)
"""The end of a text whose full stop ends no sentence; one before a small letter ends none, either."""


def sentences(text: str) -> list[str]:
    """Return the sentences of a text that have a letter or digit; a paragraph or list item ends one."""
    found = []
    for paragraph in paragraphs(text):
        start = 0
        for mark in _SENTENCE_END.finditer(paragraph):
            after = paragraph[mark.end() : mark.end() + 2].lstrip()
            before = paragraph[max(0, mark.start() - 10) : mark.start()]
            if after and (after[0].islower() or _ABBREVIATION.search(before)):
                continue
            found.append(paragraph[start : mark.end()])
            start = mark.end()
        found.append(paragraph[start:])
    return [sentence.strip() for sentence in found if _WORD.search(sentence)]
