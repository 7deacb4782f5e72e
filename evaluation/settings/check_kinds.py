"""What every check of an answer has: the kind that decides which rates of Tier4 it counts for.

    format       lists, lengths, letter case, first and last words
    instruction  what the answer must say, must not say, or must refuse
    clean        nothing but the answer: no template tokens, no other speaker's turn, no loops
    json, code   the whole answer is JSON of a schema; its code is Python

`metrics/rates.py` has the rates.
"""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from evaluation.settings.model import Integer, Settings, Text

Kind = Literal["format", "instruction", "clean", "json", "code"]


def _says_something(text: str) -> str:
    if not text.strip():
        raise ValueError(
            "holds nothing but blanks, which every answer or none has; write what it says"
        )
    return text


Words = Annotated[Text, AfterValidator(_says_something)]
Texts = Annotated[tuple[Words, ...], Field(min_length=1)]

MOST_THINGS = 10**6
"""What is counted in an answer."""


class FormatCheck(Settings):
    kind: ClassVar[Kind] = "format"


class Counted(FormatCheck):
    """A number of things in the answer; at least one unless `at_least: 0` is given."""

    exactly: Integer | None = Field(None, ge=0, le=MOST_THINGS, description="The number itself.")
    at_least: Integer = Field(1, ge=0, le=MOST_THINGS, description="Smallest number allowed.")
    at_most: Integer | None = Field(
        None, ge=0, le=MOST_THINGS, description="Largest number allowed."
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
        if self.exactly is not None:
            return number == self.exactly
        return self.at_least <= number and (self.at_most is None or number <= self.at_most)


class InstructionCheck(Settings):
    kind: ClassVar[Kind] = "instruction"


class CleanCheck(Settings):
    kind: ClassVar[Kind] = "clean"
