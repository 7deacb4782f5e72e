"""Settings of checks of Python answers: tests where the code can be run, else its form."""

import ast
import builtins
import keyword
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, field_validator

from evaluation.settings.check_kinds import CheckKind, Counted, FormatCheck, InstructionCheck
from evaluation.settings.model import Settings


def _parsed(source: str) -> ast.Module:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(f"`{source}` is not Python") from None


def _one_statement(pattern: str) -> str:
    if len(_parsed(pattern).body) != 1:
        raise ValueError(f"`{pattern}` is not one statement or expression")
    return pattern


def _asserting(source: str) -> str:
    nodes = list(ast.walk(_parsed(source)))
    if not any(isinstance(node, ast.Assert) for node in nodes):
        raise ValueError(f"`{source}` has no assert statement, so that any code would pass")
    names = [node for node in nodes if isinstance(node, ast.Name)]
    assigned = {name.id for name in names if isinstance(name.ctx, ast.Store)}
    if not {name.id for name in names} - assigned - set(dir(builtins)):
        raise ValueError(f"`{source}` uses nothing that the code defines, so no code would pass")
    return source


def _name(word: str) -> str:
    if not word.isidentifier() or keyword.iskeyword(word):
        raise ValueError(f"{word!r} is not a Python name, so no code has it")
    return word


Patterns = Annotated[
    tuple[Annotated[str, AfterValidator(_one_statement)], ...], Field(min_length=1)
]
_MEANING = "Python; `_` stands for anything, `...` for any arguments or statements."


class OnlyCode(FormatCheck):
    check: Literal["only_code"] = Field(
        description="Python alone, in one fence or none, and no prose around it."
    )


class CodeLines(Counted):
    check: Literal["code_lines"] = Field(
        description="lines of the code that are not blank; lines of a fence do not count."
    )


class DefinitionsOnly(FormatCheck):
    check: Literal["definitions_only"] = Field(
        description="functions, classes, imports and constants, and no use of them."
    )


class PassesTests(InstructionCheck):
    check: Literal["passes_tests"] = Field(
        description="the code passes these tests, run in the sandbox."
    )
    tests: Annotated[str, AfterValidator(_asserting)] = Field(
        description="Python with assert statements, which use what the code defines."
    )


class CodeIs(InstructionCheck):
    check: Literal["code_is"] = Field(
        description="the code is one of these statements, and nothing else."
    )
    any_of: Patterns = Field(description=_MEANING)


class Defines(InstructionCheck):
    check: Literal["defines"] = Field(
        description="the code has this function, by def or lambda, and not as a stub."
    )
    function: Annotated[str, AfterValidator(_name)] = Field(
        description="Name of the function or method."
    )
    arguments: tuple[str, ...] | None = Field(
        None, description="Names of its arguments, in order; any if not given."
    )

    @field_validator("arguments")
    @classmethod
    def _possible(cls, arguments: tuple[str, ...] | None) -> tuple[str, ...] | None:
        names = [_name(argument.removeprefix("*")) for argument in arguments or ()]
        if names[:1] in (["self"], ["cls"]):
            raise ValueError(f"{names[0]!r} is not counted among the arguments; leave it out")
        return arguments


class CodeHas(InstructionCheck):
    check: Literal["code_has"] = Field(
        description="one of these expressions or statements occurs in the code."
    )
    any_of: Patterns = Field(description=_MEANING)


class CodeLacks(InstructionCheck):
    check: Literal["code_lacks"] = Field(
        description="the code is Python, and none of these occurs in it."
    )
    patterns: Patterns = Field(description=_MEANING)


class PythonParses(Settings):
    kind: ClassVar[CheckKind] = "code"

    check: Literal["python_parses"] = Field(
        description="the fenced code, or else the whole answer, is Python."
    )
