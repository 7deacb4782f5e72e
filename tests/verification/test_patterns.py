"""Patterns: what is found, what is ignored, what a suite may not write."""

import pytest
from pydantic import ValidationError

from evaluation.settings.verifiers import Pattern
from evaluation.verification.patterns import verify_pattern

IGNORED = (",", r"\$", r"(?s).*#### ", r"\.$")
STRICT = Pattern(
    kind="pattern", pattern=r"#### (\-?[0-9\.\,]+)", ignore=IGNORED, form="#### {gold}"
)
FLEXIBLE = Pattern(
    kind="pattern", pattern=r"(-?[$0-9.,]{2,})|(-?[0-9]+)", take="last", ignore=IGNORED
)
LETTER = Pattern(kind="pattern", pattern="answer is (?:option )?([a-d])", ignore_case=True)
WHOLE = Pattern(kind="pattern", pattern="yes|no")

CASES = [
    (STRICT, "18", "so\n#### 18", 1, "18"),
    (STRICT, "1000", "#### 1,000.", 1, "1,000."),
    (STRICT, "1,000", "#### 1000", 1, "1000"),
    (STRICT, "18", "#### 18\n\n#### 19", 1, "18"),
    (STRICT, "18", "The answer is 18", 0, None),
    (STRICT, "18", "#### $18", 0, None),
    (STRICT, "18", "#### 18.00", 0, "18.00"),
    (STRICT, "16 - 3 = 13\n#### 13", "#### 13", 1, "13"),
    (FLEXIBLE, "18", "3 and then $18.", 1, "$18."),
    (FLEXIBLE, "5", "it is 5", 1, "5"),
    (FLEXIBLE, "5", "it is 5, or 6", 0, "6"),
    (FLEXIBLE, "18", "", 0, None),
    (FLEXIBLE, "18", "\x00 18 \ud800", 1, "18"),
    (LETTER, "B", "the answer is b", 1, "b"),
    (LETTER, "B", "the answer is option c", 0, "c"),
    (WHOLE, "yes", "well, yes", 1, "yes"),
]


@pytest.mark.parametrize(("settings", "gold", "completion", "credit", "answer"), CASES)
def test_finds(
    settings: Pattern, gold: str, completion: str, credit: int, answer: str | None
) -> None:
    verdict = verify_pattern(settings, {"gold": gold}, completion)
    assert (verdict.credit, verdict.answer) == (credit, answer)
    assert bool(verdict.reason) == (credit == 0)


def test_reads_a_long_completion_once() -> None:
    verdict = verify_pattern(FLEXIBLE, {"gold": "7"}, "12 " * 300_000 + "7")
    assert verdict.credit == 1


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        ({"pattern": "("}, "is not a regular expression"),
        ({"pattern": "x", "ignore": ["["]}, "is not a regular expression"),
        ({"pattern": "x", "form": "#### gold"}, "the place of the answer"),
    ],
)
def test_refuses(keys: dict[str, object], named: str) -> None:
    with pytest.raises(ValidationError, match=named):
        Pattern.model_validate({"kind": "pattern", **keys})
