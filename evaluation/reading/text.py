"""Normalises an answer's text, and splits it into words and sentences."""

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
        **{char: " " + unicodedata.normalize("NFKC", char) for char in "¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"},
        "⁄": "/",
    }
)
"""Characters that NFKC would change in meaning (10² to 102, ① to 1), or would not unify."""


@lru_cache(maxsize=16)
def plain(text: str) -> str:
    r"""Return a text in NFKC with straight quotes, `\n` and no invisible characters."""
    lines = _INVISIBLE.sub("", _LINE_END.sub("\n", text))
    return unicodedata.normalize("NFKC", lines.translate(_SPELLINGS)).translate(_SPELLINGS)


_EMPHASIS = re.compile(r"[*`]+|~~|(?<![^\W_])_+|_+(?![^\W_])")


def without_emphasis(text: str) -> str:
    """Return a text without Markdown's signs for bold, italics and code; `snake_case` stays."""
    return _EMPHASIS.sub("", text)


def without_outer(text: str, marks: str) -> str:
    """Return a text without the mark around the whole of it, if none of these is within, too."""
    is_marked = len(text) > 2 and text[0] == text[-1] and text[0] in marks
    return text[1:-1] if is_marked and text[0] not in text[1:-1] else text


def core(text: str) -> str:
    """Return a short answer without case, accents, spacing, quotes, emphasis and final punctuation."""
    words = " ".join(_without_accents(without_emphasis(plain(text))).casefold().split())
    return words.strip("\"' ").rstrip(".!。,;").strip("\"' ")


def _without_accents(text: str) -> str:
    apart = unicodedata.normalize("NFKD", text)
    return "".join(char for char in apart if not unicodedata.combining(char))


WITHOUT_SPACES = (
    "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
"""Characters of scripts without spaces between words (Chinese, Japanese, Thai, Lao, Khmer …), for a class."""
_DASHES = re.compile(r"(?<=\D)[–—]+|[–—]+(?=\D)|-{2,}|\.{3,}")
_RUN = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_MOST_RUNS = 4
_WITHOUT_SPACES = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")


def words(text: str) -> list[str]:
    """Return the words of a text: pieces between spaces or dashes that have a letter or digit.

    `state-of-the-art` and `3.50` are one word each. A piece with more than four runs of letters counts
    as that many words, so that hyphens instead of spaces save nothing. In scripts without spaces, each
    character is a word.
    """
    spaced = _WITHOUT_SPACES.sub(lambda found: f" {found[0]} ", _DASHES.sub(" ", plain(text)))
    parts: list[str] = []
    for piece in spaced.split():
        runs = _RUN.findall(piece)
        parts.extend(runs if len(runs) > _MOST_RUNS else [piece] if runs else [])
    return parts


_SENTENCE_END = re.compile(
    r"(?<![.!?])[.!?]++[\"')\]*_]*+(?=\s|$)"
    r"|。"
    r"|(?<=[a-z]{2})[.!?](?=[A-Z][a-z])"  # without a space between sentences
)
_TITLES = frozenset("mr mrs ms dr prof st jr sr vs e.g i.e u.s u.k u.n a.m p.m".split())
_BEFORE_LOWER_CASE = frozenset(
    "etc approx inc ltd co no fig cf al ca est dept min max ed vol".split()
)
"""Abbreviations that end a sentence only before a capital letter."""


def sentences(paragraph: str) -> list[str]:
    """Return the sentences of a paragraph on one line, without those that have no letter or digit."""
    ends = [match.end() for match in _SENTENCE_END.finditer(paragraph) if _ends(paragraph, match)]
    parts = [paragraph[start:end] for start, end in zip([0, *ends], [*ends, None], strict=True)]
    return [part.strip() for part in parts if _RUN.search(part)]


def _ends(paragraph: str, mark: re.Match[str]) -> bool:
    """Return whether a stop ends a sentence, unlike in `Dr.`, an initial, `e.g. this` or `"No!" he`."""
    after = paragraph[mark.end() : mark.end() + 20].lstrip()
    if not after:
        return True
    before = paragraph[max(0, mark.start() - 30) : mark.start()].split()
    word = before[-1].lstrip("(\"'*_").casefold() if before else ""
    stop = mark.group()
    if stop[0] == "." and (word in _TITLES or (len(word) == 1 and word.isalpha() and word != "i")):
        return False
    if not after[0].islower():
        return True
    return not (stop.startswith("..") or stop[-1] in "\"')" or word in _BEFORE_LOWER_CASE)
