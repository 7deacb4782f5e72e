"""Checks of an answer's lists. Any usual sign marks an item: `-`, `•`, `1.`, `(1)`, `**1.**`, `①` …"""

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Literal

from evaluation.checks.declared import Alternatives, Flag, Number, check
from evaluation.checks.fences import read_fences
from evaluation.checks.text import ITEM, core, plain, without_emphasis, words
from evaluation.checks.wording import has_any

_WORD = re.compile(r"[^\W_]|[^\s!-~]")
_EMOJI = re.compile("[\u2600-\u27bf\u2b50\u2b55\U0001f000-\U0001faff]")


@dataclass(frozen=True)
class ListItem:
    """An item of a list: its number (None for a bullet), how many items enclose it, and its lines."""

    number: int | None
    level: int
    lines: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The item's text on one line, without emphasis."""
        return without_emphasis(" ".join(self.lines)).strip()


@lru_cache(maxsize=16)
def read_list(text: str) -> tuple[tuple[ListItem, ...], bool]:
    """Return the outermost items of an answer that have words, and whether there is text outside of them.

    Lines of code blocks are no items. An indented line belongs to the item above it.
    """
    read = plain(text)
    fenced = {number for fence in read_fences(read) for number in range(*fence.lines)}
    items: list[ListItem] = []
    indents: list[int] = []
    anything_else = False
    for number, line in enumerate(read.split("\n")):
        if found := None if number in fenced else ITEM.fullmatch(line.rstrip()):
            indent = len(found["indent"].expandtabs(4))
            indents = [*(outer for outer in indents if outer + 2 <= indent), indent]
            value = int(found["number"]) if found["number"] else None
            items.append(ListItem(value, len(indents) - 1, [found["text"]]))
        elif indents and line.strip() and line[0] in " \t":
            items[-1].lines.append(line.strip())
        elif line.strip():
            anything_else = True
            indents.clear()
    outermost = (item for item in items if item.level == 0 and _WORD.search(item.text))
    return tuple(outermost), anything_else


@check("format")
def bullet_count(text: str) -> int:
    """outermost bullets, whatever their sign."""
    return sum(item.number is None for item in read_list(text)[0])


@check("format")
def numbered_count(text: str) -> int:
    """outermost items `1.`, `1)` or `(1)`."""
    return sum(item.number is not None for item in read_list(text)[0])


Marker = Annotated[Literal["bullets", "numbers"], "Sign of its items."]
Start = Annotated[Number, "The first number."]


@check("format")
def only_list(text: str, marker: Marker, start: Start = 1) -> bool:
    """a list and nothing before or after it; numbers count up."""
    items, anything_else = read_list(text)
    numbers = [item.number for item in items]
    wanted = range(start, start + len(numbers)) if marker == "numbers" else [None] * len(numbers)
    return bool(numbers) and not anything_else and numbers == list(wanted)


@check("instruction")
def list_items(
    text: str,
    texts: Annotated[Alternatives, "A list in place of one has alternatives."],
    how: Annotated[Literal["contain", "equal"], "How an item has it."] = "contain",
    in_order: Annotated[Flag, "In the order of the texts."] = True,
    most_words: Annotated[Number, "Most words of an item."] = 10**6,
) -> bool:
    """the outermost list has one item for each of the texts."""
    items = [item.text for item in read_list(text)[0]]
    twice = len(set(map(core, items))) < len(items)
    too_long = any(len(words(item)) > most_words for item in items)
    if len(items) != len(texts) or too_long or (twice and how != "equal"):
        return False
    fits = [[_fits(item, wanted, how) for wanted in texts] for item in items]
    return all(fits[i][i] for i in range(len(items))) if in_order else _can_be_paired(fits)


def _fits(item: str, wanted: str | tuple[str, ...], how: str) -> bool:
    if how == "contain":
        return has_any(item, wanted)
    ways = (wanted,) if isinstance(wanted, str) else wanted
    return core(_EMOJI.sub("", item)) in map(core, ways)


def _can_be_paired(fits: list[list[bool]]) -> bool:
    """Return whether each item can be paired with a different text that it fits."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    return bool((maximum_bipartite_matching(csr_array(fits)) >= 0).all())
