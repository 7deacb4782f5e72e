"""What an answer says and must not say."""

import re
from collections.abc import Iterable

from evaluation.grading.checks.text import core, plain, without_emphasis

_NOT = r"(?!'t(?!\w))"  # `can` is not said by "can't"


def says(text: str, term: str, match_case: bool) -> bool:
    """Whether a word or phrase occurs, neither end of it in the middle of a word."""
    read, term = plain(text), plain(term)
    if without_emphasis(term) == term:
        read = without_emphasis(read)
    if not match_case:
        read, term = read.casefold(), term.casefold()
    words = r"\s+".join(re.escape(word) for word in term.split())
    start = r"(?<!\w)" if re.match(r"\w", term) else ""
    end = rf"(?!\w){_NOT}" if re.search(r"\w\Z", term) else ""
    return re.search(start + words + end, read) is not None


def contains(text: str, texts: Iterable[str], match_case: bool) -> bool:
    return all(says(text, term, match_case) for term in texts)


def contains_any(text: str, texts: Iterable[str], match_case: bool) -> bool:
    return any(says(text, term, match_case) for term in texts)


def excludes(text: str, texts: Iterable[str], match_case: bool) -> bool:
    return bool(plain(text).strip()) and not contains_any(text, texts, match_case)


def answers(text: str, texts: Iterable[str]) -> bool:
    return core(text) in {core(answer) for answer in texts}
