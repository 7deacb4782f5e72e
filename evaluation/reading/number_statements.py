"""Reads which numbers a sentence states, among those that it only mentions."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from evaluation.reading.final_answers import COMPLEMENT
from evaluation.reading.number_words import WRITTEN, in_words
from evaluation.reading.numbers import Number, read_numbers
from evaluation.reading.units import unit_named

BRACKETS = re.compile(r"[(（\[][^()（）\[\]]*[)）\]]")
_SEVERAL = re.compile(
    r"\s*\S{0,12}?\s*(?:\bor\b|\bversus\b|还是|或|/or)\s*(?:maybe|perhaps|possibly)?\s*\S{0,3}\s*",
    re.I,
)
_RANGE = re.compile(r"\s*(?:-|–|—|~|to|through)\s*[$€£]?\s*", re.I)
_JOINT = r"\s*(?:[,;]?\s*(?:and|&|und|et|y|e|en|och|и|和|及|と|및|và)|[,;])\s*"
_LIST = re.compile(rf"\ue002+(?:{_JOINT}\ue002+)+", re.IGNORECASE)
"""Numbers, as `_listed` masks them, with nothing else between them."""
_ENUMERATED = re.compile(r".*[^\s,;\ue002]\s*\ue002+", re.DOTALL)
"""A list up to the number behind its last `and`."""
_LEAD = re.compile(r"\W*(?:[a-z]\s*=\W*)?", re.IGNORECASE)
_UNIT = re.compile(r"\W*(?:[^\W\d_]+\W*)?")
EQUALS = re.compile(
    r"[=≈]|\\equiv(?![A-Za-z])|\b(?:equals|which is|that is|i\.e\.|gives|makes|=>)\b|⇒|→"
    r"|\b(?:hence|therefore|thus)\b(?=\W*\d)"
)
_COUNTED = re.compile(
    r"(\bthere (?:is|are) (?:exactly )?\d+\b[^:=\n\d]{0,60}):.*", re.IGNORECASE | re.DOTALL
)
"""A number of things, and their list."""
_RUN = re.compile(r"[^:=\n]+:?")
_FROM_NUMBER = re.compile(r"(?=(\d\D*\d?))\d")
"""Each digit, with the text up to the next digit."""
_STATES = re.compile(r"\b(?:is|are|needed|required)\b")
_REASON = re.compile(r":| because\b| since\b")
_CONCLUSION = re.compile(
    r"\b(?:so(?! that\b)|therefore|thus|hence|consequently|which means(?: that)?|meaning"
    r"|but (?:it|that|this|the answer) (?:is|was)|but actually|donc|folglich|somit|daher|por (?:lo )?tanto"
    r"|entonces|así que|quindi|portanto|logo|dus|zatem|поэтому|значит)\b"
    r"|所以|因此|因而|なので|이므로|ので|よって|したがって|だから|ดังนั้น|따라서|그러므로|इसलिए|لذلك|إذن",
    re.IGNORECASE,
)
_BESIDE = re.compile(
    r",? (?:which|because|since|while|whereas|that is|i\.e\.|pues|porque|weil|denn|car|parce que)\b"
    r"|\s[-–—]\s(?=[a-z])|, \S+ (?:more|less|fewer|\w+er) than\b",
    re.IGNORECASE,
)
"""What begins a clause that says more about a statement."""
DENIED_BEFORE = re.compile(
    r"(?:\b(?:can)?not|n't|\bnever|\bneither|\brather than|\binstead of|\bnicht|\bpas|\bkein\w*"
    r"|\bno (?:es|son|era|fue)|\bnon|\bnão|\bне|\bniet|不是|而非|(?<=[a-z)] )[<>]|(?<=[^<A-Za-z/][a-z])[<>]"
    r"|[≤≥]|\b(?:more|less|fewer|greater|smaller|larger) than|\bhalf(?: of)?|\btwice|\bdouble"
    r"|\b(?:third|quarter) of)\s*(?:be|equal|exactly|\$)?\s*$",
    re.IGNORECASE,
)
"""What denies a value right behind it."""
_SUM = re.compile(
    r"\s*\w*\s*(?:in all|in total|altogether|all together|overall|all told)\b", re.IGNORECASE
)
_LISTED_ON = re.compile(r",?\s*or\s+\d")
_TIME = re.compile(r"\s*(?:seconds?|minutes?|hours?|days?|weeks?|months?|years?)\W*", re.IGNORECASE)
"""A duration at the end of a sentence: `100 machines make 100 toys in 5 minutes`."""
_WRONG = re.compile(
    r"\s*(?:is|was|would be)\s+(?:wrong|incorrect|not\b)"
    r"|\s*(?:ist|est|es|é)\s+(?:falsch|fau[xs]|incorrect|falso|errad)"
    r"|\s?\S{0,3}?\s?(?:[가이] 아니|(?:では|じゃ)(?:な|あり))",
    re.IGNORECASE,
)
_QUESTION = re.compile(r"\b(?:how|what|which|when)\b[^.?!\n]{0,300}\?", re.IGNORECASE)
"""A question that a completion repeats, whose numbers are given."""
_SIGN = re.compile(r"[=≈⇒→]")
_WORDED = re.compile(
    r"\d\W*(?:\w+ )?\b(?:minus|plus|less(?! than)|times|divided by|multiplied by|reduced by"
    r"|increased by)\b[^.=\n]{0,80}?\b(?:gives?|makes?|leaves?|equals|is|yields?)\b"
)
"""A calculation in words up to its result: `120 minutes minus 30 minutes gives 90`."""
_OPERATOR = re.compile(
    r"\s*(?:[-+*/×÷·^x]|\b(?:times|minus|plus|less(?! than)|divided by|multiplied by|reduced by"
    r"|increased by)\b)\s*[($]?\s*",
    re.I,
)


@dataclass(frozen=True)
class FinalNumber:
    """The number, and its text."""

    number: Number
    text: str


def is_alone(text: str, numbers: list[Number]) -> bool:
    """Return whether the first number is neither one of two nor an operand."""
    if len(numbers) == 1 or _are_same(text, numbers[0], numbers[1]):
        return True
    between = text[numbers[0].end : numbers[1].start]
    is_operand = any(pattern.fullmatch(between) for pattern in (_SEVERAL, _RANGE, _OPERATOR))
    return not is_operand and numbers[0].start not in _listed(text, numbers)


def _listed(text: str, numbers: Sequence[Number]) -> set[int]:
    """Return where numbers are that are named with others: `5 and 6`; a text that is nothing but `5, 6`."""
    characters = list(text)
    for number in numbers:
        characters[number.start : number.end] = "\ue002" * (number.end - number.start)
    masked = "".join(characters)
    listed = set[int]()
    for run in _LIST.finditer(masked):
        is_all = _LEAD.fullmatch(text, 0, run.start()) and _UNIT.fullmatch(text, run.end())
        enumerated = None if is_all else _ENUMERATED.match(run[0])
        end = run.end() if is_all else run.start() + (enumerated.end() if enumerated else 0)
        members = [number for number in numbers if run.start() <= number.start < end]
        is_clause = len(members) == 2 and "," in run[0] and not is_all  # `5, and 6 are left`
        are_different = len({number.value for number in members}) > 1
        if are_different and not is_clause:
            listed |= {number.start for number in members}
    return listed


def asserted_by(sentence: str, context: str) -> Iterator[FinalNumber]:
    """Yield the first and the last number that the conclusion of a sentence states, behind its last `=`."""
    clause = _conclusion(_COUNTED.sub(r"\1", sentence), context)
    beside = _BESIDE.search(clause)
    if beside and _has_main(clause[: beside.start()], context):
        clause = clause[: beside.start()]
    signs = (*_SIGN.finditer(clause), *_WORDED.finditer(clause))
    sign = max((sign.end() for sign in signs), default=0)
    numbers = read_numbers(clause, context)
    listed = _listed(clause, numbers)
    free = [
        number
        for place, number in enumerate(numbers)
        if number.start not in listed
        and not _is_contested(clause, numbers, place)
        and not is_denied(clause, number)
    ]
    questions = " ".join(_QUESTION.findall(context))
    given = {number.value for number in read_numbers(questions, context)} if questions else set()
    free = [number for number in free if number.value not in given] or free
    main = [number for number in free if not _is_complement(clause, number)] or free
    sums = [number for number in main if _SUM.match(clause, number.end)]
    main = [one for one in sums if clause[: one.start].rstrip().endswith((",", ":"))] or main
    behind = [number for number in main if number.start >= sign - 1]
    before = [number for number in main if number.start < sign - 1]
    if before and (not behind or _are_same(clause, before[-1], behind[0])):
        behind.insert(0, before[-1])
    if behind and not re.search(r"\b(?:between|either)\b", clause[: behind[-1].start], re.I):
        yield named(behind[0], clause)
        yield named(behind[-1], clause)
        if free and free[-1] is numbers[-1] and _TIME.fullmatch(clause, free[-1].end):
            yield named(free[-1], clause)


def _has_main(clause: str, context: str) -> bool:
    return any(not _is_complement(clause, number) for number in read_numbers(clause, context))


def _without_reason(sentence: str) -> str:
    """Return a statement up to the list or reason behind it: `7 buses are needed: 6 carry only 288`."""
    text = _COUNTED.sub(r"\1", sentence)
    for run in _RUN.finditer(text):
        reasons = [
            part.start() + reason.start()
            for part in _FROM_NUMBER.finditer(run[0])
            if (verb := _STATES.search(part[1]))
            for reason in _REASON.finditer(part[1], verb.end())
        ]
        if reasons:
            return text[: run.start() + reasons[-1]]
    return text


def _conclusion(sentence: str, context: str) -> str:
    """Return what follows the last `so` or `therefore`; all of the sentence if no number does."""
    for conclusion in reversed(list(_CONCLUSION.finditer(sentence))):
        if read_numbers(sentence[conclusion.end() :], context):
            return sentence[conclusion.end() :]
    return sentence


def _is_contested(text: str, numbers: Sequence[Number], place: int) -> bool:
    """Return whether a number is an operand, one end of a range, or one of two different answers."""
    for left, right in pairwise(numbers[max(0, place - 1) : place + 2]):
        between = text[left.end : right.start]
        is_listed = between.strip() == "," and _LISTED_ON.match(text, right.end)
        if is_listed or any(
            pattern.fullmatch(between) for pattern in (_SEVERAL, _RANGE, _OPERATOR)
        ):
            return not (_are_same(text, left, right) or _is_restated(text, left, right, numbers))
    return False


def converted_in(sentence: str, context: str) -> Iterator[FinalNumber]:
    """Yield numbers in brackets that repeat the one before them in another unit: `5 km (5000 m)`."""
    for left, right in pairwise(read_numbers(sentence, context)):
        between = sentence[left.end : right.start]
        if re.fullmatch(r"(?:\s*\S{1,12}){0,2}\s*\(\D{0,8}", between) and _are_same(
            sentence, left, right
        ):
            yield named(right, sentence)


def _is_restated(text: str, left: Number, right: Number, numbers: Sequence[Number]) -> bool:
    """Return whether `, or` joins different things, or a sum and its value: `18 dollars, or $126`."""
    if left.is_percent != right.is_percent and "," in text[left.end : right.start]:
        return True
    before = [number for number in numbers if number.end <= left.start]
    if before and _OPERATOR.fullmatch(text[before[-1].end : left.start]):
        return True
    if not re.fullmatch(r"\s*[^\W\d_]+,\s*or\s+", text[left.end : right.start]):
        return False
    words = [re.match(r"\s*([^\W\d_]*)", text[number.end :]) for number in (left, right)]
    return len({word[1].casefold() for word in words if word}) == 2


def _are_same(text: str, left: Number, right: Number) -> bool:
    """Return whether two numbers are one value in two units: `120 minutes, or 2 hours`."""
    if left.value == right.value:
        return True
    values = []
    for number in (left, right):
        word = re.match(r"[ -]?([A-Za-z]+)", text[number.end :])
        unit = unit_named(word[1] if word else "")
        values.append((unit.dimension, number.value * unit.size))
    if left.is_percent != right.is_percent:
        return right.value in (100 * left.value, left.value / 100)
    return values[0] == values[1] and values[0][0] != ""


def stated_by(sentence: str, context: str) -> FinalNumber | None:
    """Return the number that a sentence states: what follows its last `=`, or its last main number."""
    sentence = _conclusion(_without_reason(sentence), context)
    outside = BRACKETS.sub(lambda match: " " * len(match.group()), sentence)
    text = outside if read_numbers(outside, context) else sentence
    numbers = [number for number in read_numbers(text, context) if not is_denied(text, number)]
    if not numbers:
        return None
    equals = [match.end() for match in EQUALS.finditer(text)]
    after = [number for number in numbers if equals and number.start >= equals[-1] - 1]
    if after:
        return named(after[0], text) if is_alone(text, after) else None
    main = [number for number in numbers if not _is_complement(text, number)]
    if not main and text == outside != sentence:
        text, numbers = sentence, read_numbers(sentence, context)
        main = [number for number in numbers if not _is_complement(text, number)]
    main = main or numbers
    place = numbers.index(main[-1])
    neighbours = numbers[max(0, place - 1) : place + 2]
    for left, right in pairwise(neighbours):
        between = text[left.end : right.start]
        if _SEVERAL.fullmatch(between) or _RANGE.fullmatch(between):
            return None
    is_one_of_two = re.search(r"\b(?:between|either)\b", text[: main[-1].start], re.I)
    if is_one_of_two or main[-1].start in _listed(text, numbers):
        return None
    return named(main[-1], text)


def _is_complement(text: str, number: Number) -> bool:
    """Return whether a number is not what its sentence states: `for 16 glasses`, but not `for $16`."""
    before = text[max(0, number.start - 30) : number.start]
    if not COMPLEMENT.search(before):
        return False
    has_currency = re.match(r"\s*[-+]?\s*[$€£¥₹]", text[number.start : number.end]) is not None
    return not (has_currency and re.search(r"\b(?:for|at|than|from|in)\s*$", before, re.IGNORECASE))


def is_denied(text: str, number: Number) -> bool:
    """Return whether a text says that it is not this number."""
    before = text[max(0, number.start - 25) : number.start]
    return bool(DENIED_BEFORE.search(before) or _WRONG.match(text, number.end))


def named(number: Number, text: str) -> FinalNumber:
    shown = text[number.start : number.end].strip()
    has_sign = number.value >= 0 or re.search("[-–]", shown)
    return FinalNumber(number, shown if has_sign else f"-{shown}")


def read_number_words(sentence: str) -> FinalNumber | None:
    """Return the one number from ten on that a sentence has in words; smaller ones count other things."""
    numbers = [
        (value, match)
        for match in WRITTEN.finditer(sentence)
        if (value := in_words(match.group())) >= 10
    ]
    if len(numbers) != 1:
        return None
    value, match = numbers[0]
    number = Number(Fraction(value), (), match.start(), match.end(), match.start(), False)
    return FinalNumber(number, match.group())
