"""Splits a tidy formula into its signs, and moves through them."""

import re
from typing import Any

from evaluation.reading.number_words import WRITTEN, in_words

Tree = tuple[Any, ...]
"""A tree of a formula (`formulas`)."""

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d{1,3}(?:(?:\ue000|,)\d{3})+(?!\d)|\d+(?:\ue000\d+)*)(?:\.\d+)?"
    r"(?:[eE][+-]?\d{1,4}(?![A-Za-z]))?|\.\d+)|(?P<words>\u27ea[^\u27eb]*\u27eb)"
    r"|(?P<command>\\[A-Za-z]+|\\[{}|])"
    r"|(?P<name>(?:[^\W\d_π]|π(?=[ά-ώ])|(?<=[ά-ώ])π)+'*)"
    r"|(?P<sign>\*\*|[-+*/^_!%°(){}\[\]|,;:=<>≤≥≠≈±∓∪∩∖∈∅∞π&…⇒]|\\\\))"
)


class Unreadable(ValueError):
    """Raised for a text that is no formula; it never reaches users."""


def _tokens(text: str) -> list[tuple[str, str]]:
    tokens, place = [], 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None or match.lastgroup is None:
            raise Unreadable(text[place:])
        tokens.append((match.lastgroup, match[match.lastgroup]))
        place = match.end()
    return tokens


class Tokens:
    """The signs of a formula, of which the next one is read."""

    def __init__(self, text: str) -> None:
        self.tokens = _tokens(text)
        self.place = 0
        self.depth = 0
        self.in_brackets = 0

    def peek(self, ahead: int = 0) -> str:
        place = self.place + ahead
        return self.tokens[place][1] if place < len(self.tokens) else ""

    def kind(self) -> str:
        return self.tokens[self.place][0] if self.place < len(self.tokens) else ""

    def take(self) -> str:
        value = self.peek()
        if not value:
            raise Unreadable("the end")
        self.place += 1
        return value

    def expect(self, sign: str) -> None:
        if self.take() != sign:
            raise Unreadable(sign)

    def subscript(self) -> str:
        if self.peek() != "{":
            return self.take()
        self.take()
        parts = []
        while self.peek() != "}":
            parts.append(self.take())
        self.take()
        subscript = "".join(parts).strip("\u27ea\u27eb ").casefold()
        is_word = len(subscript) > 1 and WRITTEN.fullmatch(subscript)
        return str(in_words(subscript)) if is_word else subscript


JOINS = frozenset("and or & et ou und oder и или 和 或 及 と 및 또는 và hoặc".split())
"""Words between the parts of a list, also in formulas, where `y`, `o` and `e` are variables."""
JOINING = "|".join((*sorted(JOINS), "y", "e", "o"))
"""Words between formulas, as alternatives of a pattern."""


def joins(value: str) -> bool:
    return value.strip("\u27ea\u27eb ,").casefold() in JOINS
