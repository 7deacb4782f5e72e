"""Kinds of checks: each check of an answer has one, which decides the rates of Tier4 that it counts for.

    format       lists, lengths, letter case, first and last words
    instruction  what the answer must say, must not say, or must refuse
    clean        nothing but the answer: no template tokens, no other speaker's turn, no loops
    json, code   the whole answer is JSON of a schema; its code is Python

`metrics/rates.py` has the rates.
"""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from evaluation.settings.model import Integer, Settings, Text

CheckKind = Literal["format", "instruction", "clean", "json", "code"]


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("is blank, so that every answer or none passes; write a text")
    return text


Phrase = Annotated[Text, AfterValidator(_not_blank)]
Phrases = Annotated[tuple[Phrase, ...], Field(min_length=1)]

LARGEST_NUMBER = 10**6
"""Most things to count in an answer."""


class FormatCheck(Settings):
    kind: ClassVar[CheckKind] = "format"


class Counted(FormatCheck):
    """A number of things in the answer; at least one unless `at_least: 0` is given."""

    exactly: Integer | None = Field(None, ge=0, le=LARGEST_NUMBER, description="The number itself.")
    at_least: Integer = Field(1, ge=0, le=LARGEST_NUMBER, description="Smallest number allowed.")
    at_most: Integer | None = Field(
        None, ge=0, le=LARGEST_NUMBER, description="Largest number allowed."
    )

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        bounds = self.model_fields_set & {"exactly", "at_least", "at_most"}
        if not bounds or ("exactly" in bounds and len(bounds) > 1):
            raise ValueError("give either `exactly`, or `at_least`, `at_most` or both")
        if self.at_most is not None and self.at_most < self.at_least:
            raise ValueError("`at_most` is below `at_least`, so no answer could pass")
        return self

    def holds(self, number: int) -> bool:
        """Return whether a count in an answer is `exactly`, or from `at_least` to `at_most`."""
        if self.exactly is not None:
            return number == self.exactly
        return self.at_least <= number and (self.at_most is None or number <= self.at_most)


class InstructionCheck(Settings):
    kind: ClassVar[CheckKind] = "instruction"


class CleanCheck(Settings):
    kind: ClassVar[CheckKind] = "clean"
