"""Verifier of the kind `number`: the final answer is the gold number, as people write numbers."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from evaluation.reading.final_numbers import read_final_numbers
from evaluation.reading.numbers import Number, read_numbers, readable
from evaluation.settings.verifiers import NumberVerifier
from evaluation.verification.verdicts import Verdict, VerifierKind, different


def _verify(settings: NumberVerifier, document: Mapping[str, Any], completion: str) -> Verdict:
    """Verify that the final number of a completion equals the gold number exactly."""
    gold = _gold(str(document["gold"]))
    if gold is None:
        return Verdict(credit=0.0, reason=f"the gold answer {document['gold']!r} is not one number")
    answers = read_final_numbers(completion)
    if not answers:
        return Verdict(credit=0.0, reason="no single number is the final answer")
    for answer in answers:
        if is_right(answer.number, gold):
            return Verdict(credit=1.0, answer=readable(answer.text).strip())
    text = readable(answers[0].text).strip()
    return Verdict(credit=0.0, answer=text, reason=different(text, str(document["gold"])))


def _gold(gold: str) -> Number | None:
    numbers = read_numbers(readable(gold))
    return numbers[0] if len(numbers) == 1 else None


def is_right(answer: Number, gold: Number) -> bool:
    """Return whether two numbers are equal; where only one is in percent, also by its hundredth."""
    if answer.equals(gold.value):
        return True
    if answer.is_percent == gold.is_percent:
        return False
    scale = 100 if answer.is_percent else Fraction(1, 100)
    return answer.equals(gold.value * scale)


def _canonical(settings: NumberVerifier, document: Mapping[str, Any]) -> str:
    return f"The answer is {document['gold']}."


_DECIMAL_COMMAS = "€"
"""A context in which `465,50` is a number, and `2.763` may be one of thousands."""


def bare_number(settings: NumberVerifier, answer: str) -> str:
    """Return one text for all spellings of a number: its exact value; any other text as it is.

    The language of `2.763` and `2,763` is not known. They count as 2763, since a model that writes thousands
    in one sample with a sign often writes them without in another.
    """
    numbers = read_numbers(readable(answer), _DECIMAL_COMMAS)
    if len(numbers) != 1:
        return answer.strip()
    return str(max((numbers[0].value, *numbers[0].others), key=abs))


NUMBER = VerifierKind(_verify, _canonical, bare=bare_number)
