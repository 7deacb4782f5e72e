"""How a check is declared: `@check(kind)` on a function of an answer's text and of the check's settings.

The function's name is the check's name in a suite. Its docstring is the check's line in the documentation,
and its other arguments are the settings. A function that returns a number counts something: suites give its
bounds. No setting is a regular expression: one that backtracks could run forever on a model's text.

Each check has a kind, which decides the rates of Tier4 that it counts for (`grading/probes.py`):

    format       lists, lengths, letter case, first and last words
    instruction  what the answer must say, must not say, or must refuse
    clean        nothing but the answer: no template tokens, no other speaker's turn, no loops
    json, code   the whole answer is JSON of a schema; its code is Python
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, Field

CheckKind = Literal["format", "instruction", "clean", "json", "code"]


Function = Callable[..., bool | int | str]
"""Takes the answer and the check's settings; a number is a count, a text a program to test in the sandbox."""
FunctionType = TypeVar("FunctionType", bound=Function)
CHECKS: dict[str, Function] = {}
"""Every check by its name."""
KINDS: dict[str, CheckKind] = {}


def check(kind: CheckKind) -> Callable[[FunctionType], FunctionType]:
    """Register a function as a check of this kind."""

    def register(function: FunctionType) -> FunctionType:
        CHECKS[function.__name__] = function
        KINDS[function.__name__] = kind
        return function

    return register


def settings_of(function: Function) -> Mapping[str, tuple[Any, Any]]:
    """Return the type and the field of each setting; a text in its type is its description."""
    settings = {}
    for setting in list(inspect.signature(function).parameters.values())[1:]:
        described = [text for text in setting.annotation.__metadata__ if isinstance(text, str)]
        default = ... if setting.default is setting.empty else setting.default
        settings[setting.name] = setting.annotation, Field(default, description=described[-1])
    return settings


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("is blank, so that every answer or none passes; write a text")
    return text


Number = Annotated[int, Field(strict=True, ge=0, le=10**6)]
Flag = Annotated[bool, Field(strict=True)]
Phrase = Annotated[str, Field(min_length=1), AfterValidator(_not_blank)]
Phrases = Annotated[tuple[Phrase, ...], Field(min_length=1)]
Alternatives = Annotated[tuple[Phrase | Phrases, ...], Field(min_length=1)]
"""Texts; a list in place of a text holds alternatives."""
MatchCase = Annotated[Flag, "Case counts."]
