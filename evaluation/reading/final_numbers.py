"""Reads the number that a completion gives as its final answer."""

import re
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise

from evaluation.reading.final_answers import FinalAnswer, model_turn, read_final_answer
from evaluation.reading.languages import MINUS
from evaluation.reading.number_statements import (
    BRACKETS,
    EQUALS,
    FinalNumber,
    asserted_by,
    converted_in,
    is_alone,
    is_denied,
    named,
    read_number_words,
    stated_by,
)
from evaluation.reading.number_words import with_digits
from evaluation.reading.numbers import Number, read_numbers, readable
from evaluation.reading.tex import GROUPING, WRAPPING, with_signs

_MONEY = r"(?:dollars?|euros?|pounds?|Euro),?(?: (?:and|et|und|y|e|en))?"
_PART = r"(?:cents?|centimes?|céntimos?|centavos?|centesimi|pence|Cent)\b"
_OF_MONEY = (
    (re.compile(r"\b(\d{1,9})\s?([€£])\s?(\d\d)(?!\d)"), r"\2\1.\3"),
    (re.compile(rf"\b(\d{{1,12}}) {_MONEY} (\d\d) {_PART}"), r"$\1.\2"),
    (re.compile(rf"\b(\d{{1,12}}) {_MONEY} (\d) {_PART}"), r"$\1.0\2"),
)
_TEX = (
    (re.compile(r"([-−–])\s*(?=\\frac)"), r" \1"),
    (
        re.compile(r"(?<=[-−–])\\frac\s*(?:\{\s*(\d+)\s*\}|(\d))\s*(?:\{\s*(\d+)\s*\}|(\d))"),
        r"\1\2/\3\4",
    ),
    (re.compile(r"\\frac\s*\{\s*([-−]?\d+)\s*\}\s*\{\s*(\d+)\s*\}"), r" \1/\2"),
    (re.compile(r"\\frac\s*(\d)\s*(\d)"), r" \1/\2"),
    (WRAPPING, " {"),
    (re.compile(r"\\[()\[\]]|\$\$"), " "),
    (re.compile(r"\\(?=[$%€£¥#&])"), ""),
    (re.compile(rf"{GROUPING}(?=\d{{1,2}}(?!\d))"), "."),
    (re.compile(GROUPING), ","),
    (re.compile(r"[{}]"), " "),
    *_OF_MONEY,
    (
        re.compile(
            r"(?<!\d)(\d{1,9}(?:\.\d{1,9})?)((?:\s*°\s*[CF]?"
            r"|\s*degrees?(?:\s*(?:Celsius|Fahrenheit))?)\s*below\s*(?:zero|0))"
        ),
        r"-\1\2",
    ),
    (re.compile(r"(?<![\w$])\$(?=[^\d$]*\$)|(?<=[\d\s.)])\$(?=[\s.,;:!?)]|$)"), ""),
)
_DECIMAL_COMMA = re.compile(r"(?<![\d.,])(\d+),(\d+)(?!\d|[.,]\d)")
_IN_BRACKETS = re.compile(r"(?:.?[(\[]|\\\{)\d+,\d+\\?[)\]}]")
"""A point, an interval or a set: `(0,5)`."""
_WITHOUT_WORDS = re.compile(
    r"(?:\\[A-Za-z]++|[^\W\d_]{1,2}(?![^\W\d_])|,(?=\d{1,2}(?!\d))|[^,\w]|[\d_])*+"
)
"""A text with no word and no comma but decimal ones: `7/2 = 3,5`."""
_LONGEST_SENTENCE = 2_000
"""Characters of the longest sentence in which words are read as numbers."""
_SENTENCES = re.compile(r"(?<=[.!?])(?<!i\.e\.)(?<!e\.g\.)(?<!approx\.)\s+|\n+|(?<=[。！？।۔؟])")
_LIST_MARKER = re.compile(
    r"^[ \t>]*(?:\d{1,2}[.)]|\(\d{1,2}\)|(?:step|day|part|case)\s+\d+\s*[:.])[ \t]+(?=\S)",
    re.I | re.M,
)
_SPACED_MINUS = re.compile(r"^\s*[-−–]\s+(?=[$€£]?\d)")
_CLOSING = re.compile(
    r"\W*(?:let me know|feel free|(?:i )?hope (?:this|that|it)|if you\b|would you|do you|want me|shall i"
    r"|happy to|please"
    r"|good luck|great job|thanks|thank you|any (?:other |more )?questions|don't hesitate|do not hesitate"
    r"|n'hésite|avísame|espero que|lass mich|sag mir|ich hoffe|希望|如果你|如有|ご不明)",
    re.IGNORECASE,
)
"""A sentence to the reader, behind the answer."""
_REJECTING = re.compile(
    r"\b(?:other|second|negative|first) (?:solution|root|value|answer|one)\b.*\b"
    r"(?:not|n't|reject\w*|extraneous|invalid|discard\w*"
    r"|impossible|ignore\w*|no sense)\b|^\W*(?:we )?(?:reject|discard|ignore)\b|\bconfidence\b",
    re.IGNORECASE,
)
"""A sentence that rules a number out, or that is not about the question."""
_BARE = re.compile(r"[\W_]*(?:-?[\W_]*[\d.,/ ]+)[^\d.!?:=]{0,30}[\W_]*")
_EXPLAINING = re.compile(
    r"\W*(?:here(?:'s| is)|this is|that is|explanation|reason|because|working|steps?\b|how|why|solution"
    r"|calculation|there (?:are|is|were)|to see|begründung|rechnung|explication|explicación"
    r"|因为|理由|说明|解释)",
    re.IGNORECASE,
)
_FILLER = re.compile(
    r"[\s:：*_>\"'(\[$=~≈]*(?:(?:that|therefore|thus|simply|just|exactly|about|approximately|roughly"
    r"|clearly|then|also|now|"
    r"indeed|still|only|equal to|a total of|total|of|USD|US|RMB|Rs\.?|the number|约|为|是|共"
    rf"|{MINUS})[\s:：*_$]*)*",
    re.I,
)


_CUT_OFF = re.compile(r"(?:[\w)\]]\s*=|[\d)]\s*[+×÷·])\s*\Z")
"""The end of a text that breaks off in a calculation."""


def read_final_numbers(completion: str) -> list[FinalNumber]:
    """Return the numbers that the final answer of a completion may be, the likeliest first.

    A statement may have several where it gives others beside its own: a conversion, a reason, a share.
    There are none if the answer has no number, or names several.
    """
    completion = _with_decimal_points(completion)
    answer = read_final_answer(completion)
    text = readable(_without_tex(answer.text))
    context = readable(_without_tex(completion))
    if answer.form != "none":
        text = _SPACED_MINUS.sub("-", text)
        stated = _stated(text, answer, context)
        if answer.form in ("box", "mark"):
            return [stated] if stated else []
        if numbers := _distinct([stated, *asserted_by(text, context)]):
            return numbers
        if read_numbers(text):
            return []
    turn = readable(_without_tex(answer.text if answer.form == "none" else model_turn(completion)))
    if _CUT_OFF.search(turn):
        return []
    return _distinct([*_opening(turn, context), *_last(turn, context)])


def _with_decimal_points(completion: str) -> str:
    """Return a completion with points for commas that must be decimal: of `0,5`, or `3,5` without words."""
    is_bare = _WITHOUT_WORDS.fullmatch(completion)

    def pointed(number: re.Match[str]) -> str:
        is_decimal = number[1] == "0" or (is_bare and len(number[2]) < 3)
        around = completion[max(0, number.start() - 2) : number.end() + 2]
        is_member = _IN_BRACKETS.match(around)
        return f"{number[1]}.{number[2]}" if is_decimal and not is_member else number[0]

    return _DECIMAL_COMMA.sub(pointed, completion)


def _distinct(numbers: Iterable[FinalNumber | None]) -> list[FinalNumber]:
    values: dict[Fraction, FinalNumber] = {}
    for number in numbers:
        if number is not None:
            values.setdefault(number.number.value, number)
    return list(values.values())


def read_single_number(text: str) -> Number | None:
    """Return the number that is all of a text, such as `\\frac{1}{2}`, `\\$18.90` or `10\\%`."""
    text = _SPACED_MINUS.sub("-", readable(_without_tex(text)).strip(" $°"))
    numbers = read_numbers(text)
    is_all = len(numbers) == 1 and text[numbers[0].start : numbers[0].end].strip() == text
    return numbers[0] if is_all else None


def _without_tex(text: str) -> str:
    return _replaced(with_signs(text), _TEX)


def _replaced(text: str, table: Sequence[tuple[re.Pattern[str], str]]) -> str:
    for pattern, replacement in table:
        text = pattern.sub(replacement, text)
    return text


def _stated(text: str, answer: FinalAnswer, context: str) -> FinalNumber | None:
    """Return the number of a short text that states an answer."""
    numbers = read_numbers(text, context)
    if not numbers:
        return None
    if answer.form == "box" and _are_listed(text, numbers):
        return None
    is_first = _FILLER.fullmatch(text[: numbers[0].start]) and not is_denied(text, numbers[0])
    if is_first and not EQUALS.search(text):
        return named(numbers[0], text) if is_alone(text, numbers) else None
    return stated_by(text, context)


def _are_listed(text: str, numbers: list[Number]) -> bool:
    return any(
        re.fullmatch(r"\s*(?:,|;|and|&)\s*", text[left.end : right.start])
        for left, right in pairwise(numbers)
    )


def _last(text: str, context: str) -> Iterator[FinalNumber | None]:
    """Yield the numbers that the last sentence with a number states."""
    text = _LIST_MARKER.sub("", text)
    sentences = [part for part in _SENTENCES.split(text) if part.strip()]
    while len(sentences) > 1 and (
        _CLOSING.match(sentences[-1])
        or _REJECTING.search(sentences[-1])
        or sentences[-1].endswith("?")
    ):
        sentences.pop()
    for sentence in reversed(sentences):
        outside = BRACKETS.sub(" ", sentence)
        if len(outside) < _LONGEST_SENTENCE and (digits := with_digits(outside)) != outside:
            yield from asserted_by(_replaced(digits, _OF_MONEY), context)
        if read_numbers(outside, context):
            yield stated_by(outside, context)
            yield from asserted_by(outside, context)
            yield from converted_in(with_digits(sentence), context)
            return
        if written := read_number_words(outside):
            yield written
            return
        if read_numbers(sentence, context) and re.search(r"[^\W\d_]", outside):
            yield stated_by(sentence, context)
            return
    yield stated_by(text, context)


def _opening(turn: str, context: str) -> Iterator[FinalNumber]:
    """Yield the number of a short first line or sentence, `270 km`, which the rest only explains."""
    first, *rest = _SENTENCES.split(turn.strip(), maxsplit=1)
    numbers = read_numbers(first, context)
    if len(numbers) != 1 or first.endswith("?") or not _BARE.fullmatch(first) or not rest:
        return
    if _EXPLAINING.match(rest[0]) or not re.search(
        r"\b(?:so|now|then|therefore|left|remain)\b", rest[0]
    ):
        yield named(numbers[0], first)
