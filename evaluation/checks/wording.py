"""Checks of an answer's words: how many, which ones, and how they are written."""

import re
from typing import Annotated, Literal

from evaluation.checks.declared import Alternatives, Flag, MatchCase, Phrase, Phrases, check
from evaluation.checks.text import (
    WITHOUT_SPACES,
    core,
    paragraphs,
    plain,
    sentences,
    without_emphasis,
    words,
)

_LETTER = rf"[^\W{WITHOUT_SPACES}]"
"""A letter or digit of a script with spaces between words."""
WholeWords = Annotated[Flag, "Only whole words count."]


@check("format")
def word_count(text: str) -> int:
    """words."""
    return sum(len(words(paragraph)) for paragraph in paragraphs(text))


@check("format")
def sentence_count(text: str) -> int:
    """sentences; a paragraph or list item without a full stop is one, too."""
    return len(sentences(text))


@check("format")
def letter_case(text: str, case: Annotated[Literal["lower", "upper"], "Which one."]) -> bool:
    """all letters are of one case; at least one letter."""
    read = plain(text)
    return read.islower() if case == "lower" else read.isupper()


def _pattern(term: str, *, whole_words: bool = True) -> str:
    """Return a pattern for a term with any spacing, as whole words, or anywhere in scripts without spaces.

    `can` does not occur in `can't`, nor `26` in `26.2` or `1,026`.
    """
    parts = r"\s+".join(re.escape(word) for word in term.split())
    if not whole_words:
        return parts
    start = rf"(?<!{_LETTER})" if re.match(_LETTER, term) else ""
    start += r"(?<!\d[.,])" if term[0].isdigit() else ""
    if not re.search(rf"{_LETTER}\Z", term):
        return start + parts
    return rf"{start}{parts}(?!{_LETTER})(?!'t\b)" + (r"(?![.,]\d)" if term[-1].isdigit() else "")


def has_phrase(text: str, term: str, *, match_case: bool = False, whole_words: bool = True) -> bool:
    """Return whether a word or phrase occurs; emphasis is ignored unless the term has its signs."""
    read, term = plain(text), plain(term).strip()
    if without_emphasis(term) == term:
        read = without_emphasis(read)
    if not match_case:
        read, term = read.casefold(), term.casefold()
    return re.search(_pattern(term, whole_words=whole_words), read) is not None


def has_any(text: str, terms: str | tuple[str, ...], *, match_case: bool = False) -> bool:
    """Return whether a term occurs, or one of several."""
    ways = (terms,) if isinstance(terms, str) else terms
    return any(has_phrase(text, way, match_case=match_case) for way in ways)


@check("instruction")
def contains(
    text: str,
    texts: Annotated[Alternatives, "Words or phrases; of a list in place of a text, one."],
    match_case: MatchCase = False,
) -> bool:
    """all of the texts, as whole words."""
    return all(has_any(text, term, match_case=match_case) for term in texts)


@check("instruction")
def excludes(
    text: str,
    texts: Annotated[Phrases, "Words, phrases or signs."],
    match_case: MatchCase = False,
    whole_words: WholeWords = True,
) -> bool:
    """none of the texts, in an answer that is not empty."""
    return bool(plain(text).strip()) and not any(
        has_phrase(text, term, match_case=match_case, whole_words=whole_words) for term in texts
    )


@check("instruction")
def answers(text: str, texts: Annotated[Phrases, "Answers that count."]) -> bool:
    """the whole answer is one of the texts, apart from case, accents, quotes, emphasis and a full stop."""
    return core(text) in map(core, texts)


Text = Annotated[Phrase, "Whole words, as Markdown shows them."]


@check("format")
def starts_with(answer: str, text: Text, match_case: MatchCase = True) -> bool:
    """the first words are the text."""
    return _has_at(rf"\A{_pattern(plain(text).strip())}", answer, match_case)


@check("format")
def ends_with(answer: str, text: Text, match_case: MatchCase = True) -> bool:
    """the last words are the text."""
    return _has_at(rf"{_pattern(plain(text).strip())}\Z", answer, match_case)


def _has_at(pattern: str, answer: str, match_case: bool) -> bool:
    """Return whether an answer matches, without signs of headings and emphasis, and without quotes."""
    read = without_emphasis(plain(answer)).lstrip("#>\"' \n\t").rstrip("\"' \n\t")
    return re.search(pattern, read, 0 if match_case else re.IGNORECASE) is not None
