"""Reads numbers as people write them, each with its exact value and its place in the text.

Thousands may be separated by commas, spaces, apostrophes or (where the text shows it) full stops. A
number may have a currency, a Unicode minus, no digit before its decimal point, digits of any script, a
fraction, a power of ten, or a word such as `million`. Dates, times, ordinals, ratios and version numbers
are no numbers.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from evaluation.reading.languages import MINUS, NOUNS_OF_COMMAS, WORDS_OF_COMMAS
from evaluation.reading.scale_words import SCALE, exponent_of
from evaluation.reading.text import WITHOUT_SPACES, plain

_LONGEST = 1_000
"""Digits of the longest number that is read."""

_LONGEST_BASE = 20
"""Characters of the longest power that is calculated."""

_GROUPS = (
    r"\d{1,3}(?:,\d{3})+(?!\d)|\d{1,3}(?:'\d{3})+(?!\d)|\d{1,3}(?:[ ]\d{3})+(?![\d ]\d)(?!\d)"
    r"|\d{1,2}(?:,\d{2})+,\d{3}(?!\d)"
)
_COMMA = r"|\d+,\d{1,2}(?![\d,])"
"""A decimal comma, which only some languages have."""
_POINTS = r"\d{1,3}(?:\.\d{3}){2,}(?!\d)(?:,\d+)?|\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:[ ]\d{3})+,\d+"
_CURRENCY = (
    r"(?:(?:US|CA|AU|HK|NZ|R|A|C)?\$|[€£¥₹₩₽₺₫₴₱฿₦]|(?:Rs\.?|USD|EUR|GBP|INR|CNY|RMB|JPY)"
    r"(?![A-Za-z]))"
)

_NUMBER = r"""
    (?P<other>
        \d{1,4}[/.-]\d{1,2}[/.-]\d{1,4}(?!,?\d)(?!\.\d)  # a date
      | (?!\d{1,3}(?:\.\d{3}){2,6}(?!\d|\.\d))\d+(?:\.\d+){2,}  # a version
      | \d{1,3}:\d{1,2}(?::\d{1,2})?(?!\d)        # a time or ratio
      | \d+(?:,\d{3})*(?:st|nd|rd|th)(?![A-Za-z])     # an ordinal
    )
  | (?P<sign>[-+–][ ]?)?
    (?P<currency><CURRENCY>\s?)?
    (?P<inner>-)?
    (?: (?P<points><POINTS>)
      | (?P<whole><GROUPS>|\d+)(?P<decimals>\.\d+(?!\d))?
      | (?P<bare>\.\d+)
    )
    (?: (?P<exponent>[eE][+-]?\d{1,4}(?!\w|\.\d)
            |\s?[x×*·⋅]\s?10(?:\^|\*\*)\s?[({]?[+-]?\d{1,4}[)}]?)
      | \^(?:\{|\()?(?P<power>\d{1,2})(?:\}|\))?(?![\d.])
      | (?P<over>\s?/\s?\d+(?![\d/]|\.\d))
      | (?P<mixed>(?:[ ]|[ ]and[ ]|-)\d{1,4}\s?/\s?\d{1,4}(?![\d/]|\.\d))
    )?
    (?:<SCALE>)?
    (?P<percent>\s?(?:%|percent(?![a-z])|per[ ]cent(?![a-z])))?
    """


def _compiled(is_european: bool) -> re.Pattern[str]:
    points = _POINTS + (_COMMA if is_european else "")
    parts = {"CURRENCY": _CURRENCY, "POINTS": points, "GROUPS": _GROUPS, "SCALE": SCALE}
    pattern = _NUMBER
    for name, part in parts.items():
        pattern = pattern.replace(f"<{name}>", part)
    return re.compile(pattern, re.VERBOSE | re.IGNORECASE)


_COMPILED = {is_european: _compiled(is_european) for is_european in (False, True)}
_VARIABLE = re.compile(r"[xyzni](?![A-Za-z])|\s?(?:π|√|\\sqrt)")
"""A variable or irrational number that a number multiplies, as in `5y` or `5π`."""
_SPACED_LETTER = re.compile("[A-Za-z_^\\\\\u00c0-\u024f\u0370-\u052f]")
_IDEOGRAPH = re.compile(f"[{WITHOUT_SPACES}]")
"""A character of a script without spaces, where `为-58` is the number -58."""
_MINUS_WORD = re.compile(rf"{MINUS}\s*$", re.IGNORECASE)
_EUROPEAN = re.compile(
    r"€|\bEUR\b|\d\.\d{3},\d|\d \d{3},\d|\d,\d{1,2} ?(?:kr|zł|Kč|Ft|лв|руб)"
    rf"|{NOUNS_OF_COMMAS}|[а-яёіїєґ]{{3}}",
    re.IGNORECASE,
)

_FOREIGN_WORDS = re.compile(WORDS_OF_COMMAS, re.IGNORECASE)
"""Words of languages with decimal commas; one alone may be a name."""


_WORD = re.compile(r"(?<![\w\\])[^\W\d_]{3,}(?!\w)")
_ENGLISH = re.compile(
    r"\b(?:the|is|of|and|to|are|was|were|she|he|it|they|there|has|have|so|for|in|on|at|answer|total|each"
    r"|per|that|this|then|cost"
    r"|left|more|now|with|by|from|how|we|you|all|times|plus|minus)\b|[^\x00-\u024f\u1e00-\u1eff]{2}",
    re.IGNORECASE,
)
"""Words of English, and letters of other scripts: there, a comma between digits is none of a decimal."""


@dataclass(frozen=True)
class Number:
    """A number: its value, other values that its text may mean, and its place in `readable(text)`.

    A percentage's value is that of its digits: 50 for `50 %`.
    """

    value: Fraction
    others: tuple[Fraction, ...]
    start: int
    end: int
    first: int
    """Where it begins without its currency."""
    is_percent: bool

    def equals(self, value: Fraction) -> bool:
        """Return whether the text of the number may mean this value."""
        return value == self.value or value in self.others


def readable(text: str) -> str:
    """Return a text, without TeX, as `read_numbers` reads it: digits of ASCII, no marks of bold."""
    return _MARKS.sub("", plain(text).translate(_DIGITS))


_DIGITS = {
    **{
        code: str(unicodedata.decimal(chr(code)))
        for code in range(0x80, 0x20000)
        if unicodedata.decimal(chr(code), None) is not None
    },
    0x066B: ".",
    0x066C: ",",
}
_NAME = re.compile(r"0\d+(?![\d.,])")
"""Digits that name something: `007`."""
_CLOCK = re.compile(r"\d{1,2}\s?([ap])\.?m\.?(?![A-Za-z])", re.IGNORECASE)
"""A full hour: `7am`, `7 a.m.`."""
_FULL_HOUR = re.compile(r"(?<![\d:.])(\d{1,2}):00(?![\d:])")
_MARKS = re.compile(r"\*{2,}|__+|`+|~~|(?<![\w*)])\*(?=[^\s*])|(?<=[^\s*])\*(?![\w*(])")


def read_numbers(text: str, context: str = "") -> list[Number]:
    """Return the numbers of a text in order.

    Args:
        context: Text around it, which may show that commas are decimal.
    """
    return list(_numbers(text, _is_european(f"{text} {context}")))


def _is_european(text: str) -> bool:
    """Return whether a text writes decimal commas: by a mark of its own, or by words of its language."""
    if _EUROPEAN.search(text):
        return True
    if len({match.group().casefold() for match in _FOREIGN_WORDS.finditer(text)}) > 1:
        return True
    return len(_WORD.findall(text)) > 1 and not _ENGLISH.search(text)


def mark_numbers(text: str) -> str:
    """Return a text in which each number is its exact value between two private signs.

    `12`, `12.0` and `12` in other digits become the same, and none is found in `12,500`, `0.12`, `12:30`,
    `012` or `12am`, which `12 a.m.` equals.
    """
    text = _FULL_HOUR.sub(r"\1", text.translate(_DIGITS))
    parts, place = [], 0
    for number in read_numbers(text):
        if number.first < place or _NAME.match(text, number.first):
            continue
        clock = _CLOCK.match(text, number.first)
        half = f"{clock[1]}m" if clock else ""
        parts += [
            text[place : number.first],
            f"\ue000{number.value}{half}\ue001",
            "%" if number.is_percent else "",
        ]
        place = clock.end() if clock else number.end
    return "".join([*parts, text[place:]])


def _numbers(text: str, is_european: bool) -> Iterator[Number]:
    for match in _COMPILED[is_european].finditer(text):
        begin = match.end("sign") if match["sign"] else match.start()
        if match["other"] or len(match.group()) > _LONGEST:
            continue
        if begin and not match["currency"] and _SPACED_LETTER.match(text[begin - 1]):
            continue
        values = None if _VARIABLE.match(text, match.end()) else _values(match, is_european)
        if values is None:
            continue
        is_negative = _is_minus(text, match) or bool(match["inner"])
        if not is_negative and _MINUS_WORD.search(text[max(0, begin - 16) : begin]):
            is_negative = True
        signed = [-value if is_negative else value for value in values]
        is_percent = match["percent"] is not None
        first = (
            match.end("currency") if match["currency"] else match.start() if is_negative else begin
        )
        start = match.start() if is_negative else begin
        yield Number(signed[0], tuple(signed[1:]), start, match.end(), first, is_percent)


def _is_minus(text: str, match: re.Match[str]) -> bool:
    """Return whether the sign before a number is its own: no subtraction, hyphen or bullet."""
    sign = match["sign"] or "+"
    if sign[0] == "+":
        return False
    line = text[max(0, match.start() - 40) : match.start()].rpartition("\n")[2]
    before = line.rstrip()
    if sign.endswith(" "):
        return bool(before) and before[-1] in "=(:,[{"
    if line != before:
        return not before or not (before[-1].isdigit() or before[-1] in ")]}%")
    return not before or not (_is_of_word(before[-1]) or before[-1] in ")]}%")


def _is_of_word(char: str) -> bool:
    """Return whether a character belongs to a word or number whose hyphen a `-` behind it is: `GPT-4`."""
    return unicodedata.category(char)[0] in "LMN" and not _IDEOGRAPH.match(char)


def _values(match: re.Match[str], is_european: bool) -> list[Fraction] | None:
    """Return the values that a number without its sign may have, the likeliest first."""
    values = _digits(match, is_european)
    if match["over"]:
        divisor = int(match["over"].strip(" /"))
        values = [value / divisor for value in values] if divisor else []
    if match["mixed"]:
        top, _, bottom = re.sub(r"[^\d/]", "", match["mixed"]).partition("/")
        if not 0 < int(top) < int(bottom):
            return None
        values = [value + Fraction(int(top), int(bottom)) for value in values]
    if match["exponent"]:
        power = re.sub(r"[^\d+-]", "", re.sub(r"^\s?[x×*·⋅]\s?10|^[eE]", "", match["exponent"]))
        if abs(int(power)) > _LONGEST:
            return None
        values = [value * Fraction(10) ** int(power) for value in values]
    if match["power"]:
        values = [
            value ** int(match["power"]) for value in values if len(match.group()) < _LONGEST_BASE
        ]
    if match["scale"]:
        values = [value * 10 ** exponent_of(match["scale"]) for value in values]
    return values or None


def _digits(match: re.Match[str], is_european: bool) -> list[Fraction]:
    if match["points"]:
        whole, _, decimals = match["points"].partition(",")
        return [_fraction(re.sub(r"[. ]", "", whole), decimals)]
    if match["bare"]:
        return [_fraction("0", match["bare"][1:])]
    whole, decimals = match["whole"], (match["decimals"] or "")[1:]
    values = [_fraction(re.sub(r"[, ']", "", whole), decimals)]
    if is_european and len(decimals) == 3 and len(whole) <= 3 and whole != "0":
        values.append(_fraction(whole + decimals, ""))
    if is_european and re.fullmatch(r"\d{1,3},\d{3}", whole) and not decimals:
        values.append(_fraction(*whole.split(",")))
    return values


def _fraction(whole: str, decimals: str) -> Fraction:
    return Fraction(int(whole + decimals), 10 ** len(decimals))
