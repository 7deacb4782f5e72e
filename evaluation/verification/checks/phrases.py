"""Checks of words and phrases that an answer must, or must not, contain."""

import re
from collections.abc import Iterable, Iterator

from evaluation.reading.numbers import mark_numbers
from evaluation.reading.text import WITHOUT_SPACES, core, plain, without_emphasis

_LETTER = rf"[^\W{WITHOUT_SPACES}]"
"""A letter or digit of a script with spaces between words."""
_HANGUL = re.compile("[\uac00-\ud7a3]\\Z")
"""The end of a Korean word, to which particles are attached."""
_STRUCK_OUT = re.compile(r"~~(?=\S)[^~\n]{1,200}~~")
_NOT = r"(?!'t(?!\w))"  # `can` does not occur in "can't"


def has_phrase(text: str, term: str, match_case: bool) -> bool:
    """Return whether a word or phrase, with any spacing, occurs as whole words."""
    return next(_occurrences(text, term, match_case), None) is not None


def _occurrences(text: str, term: str, match_case: bool) -> Iterator[re.Match[str]]:
    """Yield the places of a term in a text, both with their numbers as values (`mark_numbers`)."""
    read, term = plain(text), plain(term)
    if without_emphasis(term) == term:
        read = without_emphasis(read)
    if not match_case:
        read, term = read.casefold(), term.casefold()
    return re.finditer(as_whole_words(mark_numbers(term)), mark_numbers(read))


def as_whole_words(term: str) -> str:
    """Return a pattern for a term as whole words, or anywhere in scripts without spaces."""
    words = r"\s+".join(re.escape(word) for word in term.split())
    start = rf"(?<!{_LETTER})" if re.match(_LETTER, term) else ""
    end = rf"(?!{_LETTER}){_NOT}" if re.search(rf"{_LETTER}\Z", term) else ""
    return start + words + ("" if _HANGUL.search(term) else end)


def _contains(answer: str, /, texts: Iterable[str], match_case: bool) -> bool:
    """Return whether all of the texts occur."""
    return all(has_phrase(answer, term, match_case) for term in texts)


def _contains_any(answer: str, /, texts: Iterable[str], match_case: bool) -> bool:
    """Return whether one of the texts occurs."""
    return any(has_phrase(answer, term, match_case) for term in texts)


def _excludes(answer: str, /, texts: Iterable[str], match_case: bool) -> bool:
    """Return whether none of the texts occurs."""
    return bool(plain(answer).strip()) and not _contains_any(answer, texts, match_case)


def _lacks_characters(answer: str, /, characters: str) -> bool:
    """Return whether none of the characters occurs."""
    read = plain(answer)
    return bool(read.strip()) and set(plain(characters)).isdisjoint(read)


def _answers(answer: str, /, texts: Iterable[str]) -> bool:
    """Return whether the whole answer is one of the texts, ignoring case, quotes and the like."""
    return same_core(answer, texts)


def same_core(answer: str, texts: Iterable[str]) -> bool:
    """Return whether an answer is one of the texts; numbers are compared by their values."""
    return mark_numbers(core(answer)) in {mark_numbers(core(text)) for text in texts}


_CLAUSE_END = re.compile(
    r"[.,;:!?](?=\s|\Z)|[\n()–—]|\s-+\s|\b(?:but|and|because|as|so|although|though|while|whereas|mais|et)\b"
)
_DENIED = re.compile(
    r"\b(?:not(?! only)|never|no(?! doubt\b| question\b)|nor|neither|without|cannot|except|unlike|nothing"
    r"|pas|jamais|nicht|kein\w*|não|non|не|niet|inte|ikke"
    r"|(?:instead|rather|other|different|far|anything) (?:of|than|from|but))\b|n't\b|不是|而非|并非"
)
_CONCEDED = re.compile(
    r"\b(?:although|though|while|whereas|despite|unlike|obwohl|aunque|bien que)\b[^,.;!?\n]*\Z"
)
"""A clause that says something else: `Although Sydney is larger, Canberra is the capital.`"""
_TAKEN_BACK = re.compile(
    r"\b(?:said|say|saying|says|stated?|stating|claim(?:ed|ing)?|wrote|told|thought|gave|wrong(?:ly)?"
    r"|(?:in)?correct(?:ly|ed|ing)?"
    r"|(?:many|most|some|people|often|commonly|popularly|widely|might|may) (?:\w+ )?"
    r"(?:think|thought|believed?|assumed?|guess|say|expect)"
    r"|mistake(?:n|nly)?|error|earlier|previous(?:ly)?|before|initial(?:ly)?|first|originally|from)\b"
)
_CORRECTED = re.compile(
    r"(?:[^.!?\n]{0,40}(?:\.\.\.|…|[—–-]))?\W*(?:sorry|wait|oops|correction|i meant?|scratch that"
    r"|or rather|actually,? no|no(?=,))\b"
    r"|[^.!?\n]{0,40}[.!?]\s+(?:sorry|wait|oops|actually|correction|scratch that)\b(?!\s+(?:for|until))"
)
_DENIED_LATER = re.compile(
    r"[^.!?\n]{0,60}\b(?:but|though|although|however),? (?:it|that|this|he|she|they)"
    r"(?: is| are| was| were)?(?: not|n't)\b"
    r"|\W*(?:is|are|was|were)(?: not|n't)\b|\W*(?:is|was) (?:my|a|the) (?:first|initial|common) "
    r"(?:guess|thought|mistake|misconception)\b"
)
_SENTENCE_END = re.compile(r"(?<!\.)[.!?](?=\s|\Z)|\n")
_WRONG = re.compile(
    r"\W*(?:\w+\W+){0,3}?(?:is|was|are|were|being)\W+(?:\w+ )?"
    r"(?:wrong|incorrect|false|an? (?:mistake|error)|not (?:right|correct|true))\b"
)


def _states(answer: str, /, texts: Iterable[str], rather_than: Iterable[str]) -> bool:
    """Return whether an answer states one of the texts as true, and none of `rather_than`.

    A text is denied if `not`, `never` or the like precedes it in its clause, or the clause calls it
    wrong. A text of `rather_than` may also be taken back: `I said six`.
    """
    return any(_is_stated(answer, text) for text in texts) and not any(
        _is_stated(answer, text, taken_back=_TAKEN_BACK) for text in rather_than
    )


def _is_stated(answer: str, text: str, taken_back: re.Pattern[str] | None = None) -> bool:
    """Return whether an occurrence of a text is neither denied nor taken back.

    What is denied or taken back once may be named again in that sentence: `not Venus, though Venus is hot`.
    """
    sentence_end = 0
    for occurrence in _occurrences(_STRUCK_OUT.sub(" ", answer), text, match_case=False):
        if taken_back and occurrence.start() < sentence_end:
            continue
        before = _CLAUSE_END.split(occurrence.string[: occurrence.start()])[-1]
        excused = _DENIED.search(before) or _WRONG.match(occurrence.string, occurrence.end())
        if taken_back and not excused:
            after = _CORRECTED.match(occurrence.string, occurrence.end())
            denied = _DENIED_LATER.match(occurrence.string, occurrence.end())
            conceded = _CONCEDED.search(occurrence.string, 0, occurrence.start())
            excused = taken_back.search(before) or after or denied or conceded
        if not excused:
            return True
        end = _SENTENCE_END.search(occurrence.string, occurrence.end())
        sentence_end = end.start() if end else len(occurrence.string)
    return False
