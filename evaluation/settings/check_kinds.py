"""What every check of an answer has: the kind that decides which rates of Tier4 it counts for.

    format       lists, lengths, letter case, first and last words
    instruction  what the answer must say, must not say, or must refuse
    clean        nothing but the answer: no template tokens, no other speaker's turn, no loops
    json, code   the whole answer is JSON of a schema; its code is Python

`grading/rates.py` has the rates.
"""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from evaluation.settings.model import Settings, Text

Kind = Literal["format", "instruction", "clean", "json", "code"]

Texts = Annotated[tuple[Text, ...], Field(min_length=1)]


MOST_THINGS = 10**6
"""What is counted in an answer."""


class FormatCheck(Settings):
    kind: ClassVar[Kind] = "format"


class InstructionCheck(Settings):
    kind: ClassVar[Kind] = "instruction"


class CleanCheck(Settings):
    kind: ClassVar[Kind] = "clean"
