"""Reads whole numbers that are written in English words."""

import re

_TO_NINETEEN = (
    "one two three four five six seven eight nine ten"
    " eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_WORDS = {
    **{word: number for number, word in enumerate(_TO_NINETEEN.split(), 1)},
    **{word: 10 * number for number, word in enumerate(_TENS.split(), 2)},
    "zero": 0,
    "a": 1,
    "dozen": 12,
    "hundred": 100,
    "thousand": 1_000,
    "million": 1_000_000,
}
WRITTEN = re.compile(
    rf"\b(?!(?:dozen|hundred|thousand|million)\b)(?:{'|'.join(_WORDS)})"
    rf"(?:(?:[\s-]|\sand\s)(?:{'|'.join(_WORDS)}))*\b",
    re.IGNORECASE,
)
"""A number in words, such as `two hundred and thirty-five`."""


def in_words(words: str) -> int:
    """Return the number that a match of `WRITTEN` names."""
    total = part = 0
    for word in re.findall(r"[a-z]+", words.casefold()):
        if word == "and":
            continue
        value = _WORDS[word]
        if value >= 1_000:
            total, part = total + max(part, 1) * value, 0
        elif word in ("dozen", "hundred"):
            part = max(part, 1) * value
        else:
            part += value
    return total + part


_PARTS = {
    **dict.fromkeys(("half", "halves"), 2),
    **dict.fromkeys(("quarter", "fourth"), 4),
    **dict(
        zip(
            "third fifth sixth seventh eighth ninth tenth eleventh twelfth".split(),
            (3, *range(5, 13)),
            strict=True,
        )
    ),
    "twentieth": 20,
    "hundredth": 100,
}
_NUMBER = rf"(?:{'|'.join(_WORDS)})(?:[\s-](?:{'|'.join(_WORDS)}))*"
_FRACTION = re.compile(
    rf"\b(?:(?P<whole>{_NUMBER}) and )?(?:(?P<top>{_NUMBER})[ -])?(?P<part>{'|'.join(_PARTS)})"
    rf"(?P<plural>s?)\b",
    re.IGNORECASE,
)
_COUNTED = re.compile(
    r"(?:(?<=\bis )|(?<=\bminus )|(?<=\bnegative ))one(?=\W*$)"
    r"|\bone(?= (?:dollar|euro|pound|hour|minute|day|week)s?\b)",
    re.IGNORECASE,
)


def with_digits(text: str) -> str:
    """Return a text with digits for numbers in words, but not for a mere `a` or `one`, except of money."""
    return _COUNTED.sub("1", WRITTEN.sub(_digits, _FRACTION.sub(_fraction, text)))


def _digits(match: re.Match[str]) -> str:
    words = match.group().casefold()
    return (
        match.group() if words in ("a", "one") or words.startswith("a ") else str(in_words(words))
    )


def _fraction(match: re.Match[str]) -> str:
    """Return `three quarters`, `a third`, `one and a half` or `half` in digits; an ordinal as it is."""
    part = match["part"].casefold()
    if match["top"] is None and part != "half":
        return match.group()
    whole = f"{in_words(match['whole'])} " if match["whole"] else ""
    return f"{whole}{in_words(match['top'] or 'one')}/{_PARTS[part]}"
