"""Checks of an answer's lists, length, letter case and layout."""

import re
from itertools import pairwise
from typing import Literal

from evaluation.reading.markdown import ListItem, read_item, read_lists
from evaluation.reading.numbers import mark_numbers
from evaluation.reading.text import core, plain, sentences, without_emphasis, without_outer, words
from evaluation.verification.checks.phrases import has_phrase, same_core

_HEADING = re.compile(r"\A(?:#{1,6}|>)[ \t]+")


def _bullet_count(text: str) -> int:
    """Count the outermost bullets with any sign."""
    return len(read_lists(text).outermost(numbered=False))


def _numbered_count(text: str) -> int:
    """Count the outermost items `1.`, `1)` or `(1)`."""
    return len(read_lists(text).outermost(numbered=True))


def _numbers_in_order(answer: str, /, start: int) -> bool:
    """Return whether the outermost numbered items count up by one."""
    numbers = [item.number for item in read_lists(answer).outermost(numbered=True)]
    return bool(numbers) and numbers == list(range(start, start + len(numbers)))


def _only_list(answer: str, /, marker: Literal["bullets", "numbers"]) -> bool:
    """Return whether the answer is only a list with this marker; nested items may have any."""
    lists = read_lists(answer)
    numbered = marker == "numbers"
    top = _top(answer)
    return (
        not lists.anything_else
        and bool(top)
        and all((item.number is not None) == numbered for item in top)
    )


def _top(text: str) -> list[ListItem]:
    """Return the items at the top level."""
    return [item for item in read_lists(text).items if item.level == 0]


def _item_words(answer: str, /, at_most: int) -> bool:
    """Return whether each list item has at most this number of words."""
    items = read_lists(answer).items
    return bool(items) and all(len(words(item.text)) <= at_most for item in items)


def _sorted_items(text: str) -> bool:
    """Return whether the items at the top level are in alphabetical order."""
    items = [core(item.text) for item in _top(text)]
    return len(items) > 1 and all(left <= right for left, right in pairwise(items))


Texts = tuple[str | tuple[str, ...], ...]


def _list_items(
    answer: str, /, texts: Texts, how: Literal["contain", "start", "equal"], in_order: bool
) -> bool:
    """Return whether the list has exactly one item for each of the texts, and none twice."""
    items = [item.text for item in _top(answer)]
    twice = len(set(map(core, items))) < len(items)
    if len(items) != len(texts) or (twice and how != "equal"):
        return False
    fits = [[_fits(item, wanted, how) for wanted in texts] for item in items]
    if in_order:
        return all(fits[index][index] for index in range(len(items)))
    return _can_be_paired(fits)


def _fits(item: str, wanted: str | tuple[str, ...], how: str) -> bool:
    ways = (wanted,) if isinstance(wanted, str) else wanted
    if how == "contain":
        return any(has_phrase(item, way, match_case=False) for way in ways)
    if how == "start":
        return any(_starts_with(item, way, match_case=False) for way in ways)
    return same_core(_EMOJI.sub("", item), ways)


def _can_be_paired(fits: list[list[bool]]) -> bool:
    """Return whether each item can be paired with a different text that it fits."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    return bool((maximum_bipartite_matching(csr_array(fits)) >= 0).all())


def _without_marker(line: str) -> str:
    item = read_item(line)
    return item.text if item else line


def _word_count(text: str) -> int:
    """Count the words of an answer without list markers."""
    return len(words("\n".join(_without_marker(line) for line in plain(text).split("\n"))))


def _sentence_count(text: str) -> int:
    """Count sentences; an item or paragraph without a full stop is one; abbreviations end none."""
    return sum(len(sentences(paragraph)) for paragraph in paragraphs(plain(text)))


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs and list items of a plain text, each on one line without its marker."""
    parts: list[list[str]] = [[]]
    for line in text.split("\n"):
        if not line.strip() or read_item(line):
            parts.append([])
        parts[-1].append(_without_marker(line).strip())
    return [" ".join(part) for part in parts if any(part)]


def _line_count(text: str) -> int:
    """Count the non-blank lines."""
    return sum(bool(line.strip()) for line in plain(text).split("\n"))


def _letter_case(answer: str, /, case: Literal["lower", "upper"]) -> bool:
    """Return whether all letters have this case."""
    read = plain(answer)
    return read.islower() if case == "lower" else read.isupper()


_MARKDOWN = re.compile(
    r"^[ \t]*(?:#{1,6} |>|```|~~~|\||(?:-{3,}|\*{3,}|_{3,})[ \t]*$)|\*\*|__|`|(?<![\w*])\*\w[^*\n]*\*(?!\w)",
    re.MULTILINE,
)
_EMOJI = re.compile("[\u2600-\u27bf\u2b50\u2b55\U0001f000-\U0001faff]")
_SENTENCE_END = tuple(".!?…\"')。")


def _plain_prose(answer: str) -> bool:
    """Return whether the answer is only sentences, without Markdown, emoji, lists or titles."""
    blocks = paragraphs(plain(answer))
    return (
        bool(blocks)
        and all(paragraph.endswith(_SENTENCE_END) for paragraph in blocks)
        and not (_MARKDOWN.search(answer) or _EMOJI.search(answer) or read_lists(answer).items)
    )


def _starts_with(answer: str, /, text: str, match_case: bool) -> bool:
    """Return whether an answer, as written or as rendered from Markdown, starts with this text."""
    pattern = re.escape(mark_numbers(plain(text))) + (r"(?!\w)" if re.search(r"\w\Z", text) else "")
    return _fits_shown(rf"\A{pattern}", answer, match_case)


def _ends_with(answer: str, /, text: str, match_case: bool) -> bool:
    """Return whether an answer, as written or as rendered from Markdown, ends with this text."""
    pattern = (r"(?<!\w)" if re.match(r"\w", text) else "") + re.escape(mark_numbers(plain(text)))
    return _fits_shown(rf"{pattern}\Z", answer, match_case)


def _fits_shown(pattern: str, answer: str, match_case: bool) -> bool:
    """Return whether an answer matches a pattern, as written or as rendered from Markdown."""
    flags = 0 if match_case else re.IGNORECASE
    texts = (plain(answer).strip(), _shown(answer))
    return any(re.search(pattern, mark_numbers(read), flags) for read in texts)


def _shown(text: str) -> str:
    """Return an answer as rendered: without heading and emphasis signs, and without outer quotes."""
    read = without_emphasis(_HEADING.sub("", plain(text).strip())).strip()
    return without_outer(read, "\"'").strip()
