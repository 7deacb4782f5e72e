"""Reads the number that a completion gives as its final answer."""

import re
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from evaluation.reading.final_answers import COMPLEMENT, FinalAnswer, model_turn, read_final_answer
from evaluation.reading.numbers import Number, read_numbers, readable

_TEX = (
    (re.compile(r"\{,\}"), ","),
    (re.compile(r"(?<=\d),?\s*\\[!,]\s*(?=\d{3}(?!\d))"), ","),
    (re.compile(r"\\[dtc]?frac\s*\{\s*([-−]?\d+)\s*\}\s*\{\s*(\d+)\s*\}"), r" \1/\2"),
    (re.compile(r"\\[dtc]?frac\s*(\d)\s*(\d)"), r" \1/\2"),
    (
        re.compile(
            r"\\(?:text|mbox|mathrm|textbf|mathbf|textit|boxed|underline|operatorname)\s*\{"
        ),
        " {",
    ),
    (re.compile(r"\\(?:left|right|displaystyle|quad|qquad)(?![A-Za-z])"), " "),
    (re.compile(r"\\(?:times|cdot)(?![A-Za-z])"), "×"),
    (re.compile(r"\\(?:approx|equiv)(?![A-Za-z])"), "="),
    (re.compile(r"\\(?:div)(?![A-Za-z])"), "÷"),
    (re.compile(r"\\[()\[\]]|\$\$"), " "),
    (re.compile(r"\\(?=[$%€£¥#& ])"), ""),
    (re.compile(r"\\[,;:!]"), " "),
    (re.compile(r"\^\s*\{?\s*\\circ\s*\}?"), "°"),
    (re.compile(r"[{}~]"), " "),
    (re.compile(r"\b(\d{1,12}) dollars?,? and (\d\d) cents?\b"), r"$\1.\2"),
    (re.compile(r"\b(\d{1,12}) dollars?,? and (\d) cents?\b"), r"$\1.0\2"),
    (
        re.compile(
            r"(?<!\d)(\d{1,9}(?:\.\d{1,9})?)((?:\s*°\s*[CF]?|\s*degrees?(?:\s*(?:Celsius|Fahrenheit))?)\s*below\s*(?:zero|0))"
        ),
        r"-\1\2",
    ),
    (re.compile(r"(?<![\w$])\$(?=[^\d$]*\$)|(?<=[\d\s.)])\$(?=[\s.,;:!?)]|$)"), ""),
)
_SENTENCES = re.compile(r"(?<=[.!?])(?<!i\.e\.)(?<!e\.g\.)(?<!approx\.)\s+|\n+|(?<=[。！？])")
_BRACKETS = re.compile(r"[(（\[][^()（）\[\]]*[)）\]]")
_LIST_MARKER = re.compile(
    r"^[ \t>]*(?:\d{1,2}[.)]|\(\d{1,2}\)|(?:step|day|part|case)\s+\d+\s*[:.])[ \t]+(?=\S)",
    re.I | re.M,
)
_SEVERAL = re.compile(
    r"\s*\S{0,12}?\s*(?:\bor\b|\bversus\b|还是|或|/or)\s*(?:maybe|perhaps|possibly)?\s*\S{0,3}\s*",
    re.I,
)
_RANGE = re.compile(r"\s*(?:-|–|—|~|to|through)\s*[$€£]?\s*", re.I)
_EQUALS = re.compile(
    r"[=≈]|\b(?:equals|which is|that is|i\.e\.|gives|makes|=>)\b|⇒|→|\b(?:hence|therefore|thus)\b(?=\W*\d)"
)
_EXPLAINED = re.compile(
    r"(\d[^:=\n]*\b(?:is|are|needed|required)\b[^\d:=\n]*)(?::|,? because\b|,? since\b).*",
    re.DOTALL,
)
"""A statement with its number, and the reason behind it: `7 buses are needed: 6 carry only 288 people`."""
_OPERATOR = re.compile(r"\s*[-+*/×÷·^x]\s*[($]?\s*", re.I)
_FILLER = re.compile(
    r"[\s:：*_>\"'(\[$=~≈]*(?:(?:that|therefore|thus|simply|just|exactly|about|approximately|roughly|clearly|then|also|now|"
    r"indeed|still|only|equal to|a total of|total|of|USD|US|RMB|Rs\.?|negative|minus|the number|约|为|是|共)[\s:：*_$]*)*",
    re.I,
)


@dataclass(frozen=True)
class FinalNumber:
    """The number, and its text."""

    number: Number
    text: str


def read_final_number(completion: str) -> FinalNumber | None:
    """Return the number that is the final answer of a completion.

    Args:
        completion: Text of a model, without its thinking.

    Returns:
        The number; None if there is none, or the answer names several.
    """
    answer = read_final_answer(completion)
    text = readable(_without_tex(answer.text))
    context = readable(_without_tex(completion))
    if answer.form != "none":
        stated = _stated(text, answer, context)
        if stated is not None or answer.form in ("box", "mark") or read_numbers(text):
            return stated
        text = readable(_without_tex(model_turn(completion)))
    return _last(text, context)


def _without_tex(text: str) -> str:
    for pattern, replacement in _TEX:
        text = pattern.sub(replacement, text)
    return text


def _stated(text: str, answer: FinalAnswer, context: str) -> FinalNumber | None:
    """Return the number of a short text that states an answer."""
    numbers = read_numbers(text, context)
    if not numbers:
        return None
    if answer.form == "box" and _are_listed(text, numbers):
        return None
    if _FILLER.fullmatch(text[: numbers[0].start]) and not _EQUALS.search(text):
        return _named(numbers[0], text) if _is_alone(text, numbers) else None
    return _of_sentence(text, context)


def _are_listed(text: str, numbers: list[Number]) -> bool:
    return any(
        re.fullmatch(r"\s*(?:,|;|and|&)\s*", text[one.end : other.start])
        for one, other in pairwise(numbers)
    )


def _is_alone(text: str, numbers: list[Number]) -> bool:
    """Return whether the first number is neither one of two nor an operand."""
    if len(numbers) == 1:
        return True
    between = text[numbers[0].end : numbers[1].start]
    return not any(pattern.fullmatch(between) for pattern in (_SEVERAL, _RANGE, _OPERATOR))


def _last(text: str, context: str) -> FinalNumber | None:
    """Return the number that the last sentence with a number states."""
    text = _LIST_MARKER.sub("", text)
    sentences = [part for part in _SENTENCES.split(text) if part.strip()]
    for sentence in reversed(sentences):
        outside = _BRACKETS.sub(" ", sentence)
        if read_numbers(outside, context):
            return _of_sentence(outside, context)
        if written := read_number_words(outside):
            return written
        if read_numbers(sentence, context) and re.search(r"[^\W\d_]", outside):
            return _of_sentence(sentence, context)
    return _of_sentence(text, context)


def _of_sentence(sentence: str, context: str) -> FinalNumber | None:
    """Return the number that a sentence states: what follows its last `=`, or its last main number."""
    sentence = _EXPLAINED.sub(r"\1", sentence)
    outside = _BRACKETS.sub(lambda match: " " * len(match.group()), sentence)
    text = outside if read_numbers(outside, context) else sentence
    numbers = read_numbers(text, context)
    if not numbers:
        return None
    equals = [match.end() for match in _EQUALS.finditer(text)]
    after = [number for number in numbers if equals and number.start >= equals[-1] - 1]
    if after:
        return _named(after[0], text) if _is_alone(text, after) else None
    main = [number for number in numbers if not _is_complement(text, number)]
    if not main and text == outside != sentence:
        text, numbers = sentence, read_numbers(sentence, context)
        main = [number for number in numbers if not _is_complement(text, number)]
    main = main or numbers
    place = numbers.index(main[-1])
    neighbours = numbers[max(0, place - 1) : place + 2]
    for one, other in pairwise(neighbours):
        between = text[one.end : other.start]
        if _SEVERAL.fullmatch(between) or _RANGE.fullmatch(between):
            return None
    if re.search(r"\b(?:between|either)\b", text[: main[-1].start], re.I):
        return None
    return _named(main[-1], text)


def _is_complement(text: str, number: Number) -> bool:
    """Return whether a number is not what its sentence states: `for 16 glasses`, but not `for $16`."""
    before = text[max(0, number.start - 30) : number.start]
    if not COMPLEMENT.search(before):
        return False
    has_currency = re.match(r"\s*[-+]?\s*[$€£¥₹]", text[number.start : number.end]) is not None
    return not (has_currency and re.search(r"\b(?:for|at|than|from)\s*$", before, re.IGNORECASE))


def _named(number: Number, text: str) -> FinalNumber:
    return FinalNumber(number, text[number.start : number.end].strip())


_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_WORDS = {
    **dict(
        zip("one two three four five six seven eight nine ten".split(), range(1, 11), strict=True)
    ),
    **dict(
        zip(
            "eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split(),
            range(11, 20),
            strict=True,
        )
    ),
    **{word: 10 * number for number, word in enumerate(_TENS, 2)},
    "a": 1,
    "hundred": 100,
    "thousand": 1_000,
    "million": 1_000_000,
}
_WRITTEN = re.compile(
    rf"\b(?:{'|'.join(_WORDS)})(?:(?:[\s-]|\sand\s)(?:{'|'.join(_WORDS)}))*\b", re.IGNORECASE
)


def read_number_words(sentence: str) -> FinalNumber | None:
    """Return the one number from ten on that a sentence has in words; smaller ones count other things."""
    numbers = [
        (value, match)
        for match in _WRITTEN.finditer(sentence)
        if (value := _in_words(match.group())) >= 10
    ]
    if len(numbers) != 1:
        return None
    value, match = numbers[0]
    number = Number(Fraction(value), (), match.start(), match.end(), match.start(), False)
    return FinalNumber(number, match.group())


def _in_words(words: str) -> int:
    total = part = 0
    for word in re.findall(r"[a-z]+", words.casefold()):
        if word == "and":
            continue
        value = _WORDS[word]
        if value >= 1_000:
            total, part = total + max(part, 1) * value, 0
        elif value == 100:
            part = max(part, 1) * value
        else:
            part += value
    return total + part
