"""Verifier of the kind `program`: runs a completion's Python code with the tests, in the sandbox.

Fields of the document: `tests` (a list of assert statements, or one source); optional `setup` (run
before the tests), `entry_point` (the function that the source's `check` is called with), `prefix` (code
in the prompt, such as HumanEval's signature and docstring), `gold` (a correct program),
`is_program` (whether a completion is a program as a whole) and `livecodebench` (the metadata of one of its
problems, whose `tests` are then as in its rows).
"""

import ast
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import reduce
from typing import Any

from evaluation.errors import ConfigError
from evaluation.settings.verifiers import Program, ProgramWithPackages
from evaluation.verification.livecodebench import METADATA, as_function, method_of, problem_tests
from evaluation.verification.sandbox.model import Limits, Tests
from evaluation.verification.sandbox.run import run_program, run_with_packages
from evaluation.verification.verdicts import Verdict, VerifierKind

_MOST_CHARACTERS = 1 << 20
"""Longest completion that is run."""
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([\w+.-]*)")
_PYTHON = {"", "python", "py", "python3"}
_FUTURE = re.compile(
    r"^from[ \t]+__future__[ \t]+import[ \t]+(?:\([^()]{0,500}\)|[^\n(]*)[^\n]*\n?", re.M
)
_DEFINITION = r"^(?:async[ \t]+def|def|class)[ \t]+{}\b|^{}[ \t]*=(?!=)"


def _verify(verifier: Program, document: Mapping[str, Any], completion: str) -> Verdict:
    """Run a completion's program with the prompt's tests; credit is None if the sandbox failed."""
    tests = _read_tests(document)
    if len(completion) > _MOST_CHARACTERS:
        return Verdict(credit=0.0, reason=f"it is longer than {_MOST_CHARACTERS:,} characters")
    whole = document.get("is_program") is True
    program = completion if whole else _program_of(completion, document, tests)
    if program is None:
        return Verdict(credit=0.0, reason="it has no code")
    answer = program.encode("utf-8", "replace").decode()  # lone surrogates cannot be stored
    if METADATA in document and method_of(document) is None:
        program = as_function(program)
    limits = Limits(seconds=float(verifier.seconds), memory_mb=int(verifier.memory_mb))
    if isinstance(verifier, ProgramWithPackages):
        outcome = run_with_packages(verifier.python, program, tests, limits)
    else:
        outcome = run_program(program, tests, limits)
    credit = None if outcome.passed is None else float(outcome.passed)
    return Verdict(credit=credit, answer=answer, reason=outcome.reason, note=outcome.note)


def _canonical(verifier: Program, document: Mapping[str, Any]) -> str | None:
    """Return the data set's solution."""
    return _text(document, "gold") if "gold" in document else None


def _read_tests(document: Mapping[str, Any]) -> Tests:
    """Return a document's tests in the form that the sandbox takes."""
    tests = document["tests"]
    if METADATA in document:
        return problem_tests(document)
    common = Tests(
        setup=_text(document, "setup"),
        given=_text(document, "prefix"),
        entry_point=_text(document, "entry_point"),
    )
    if isinstance(tests, str) and tests.strip():
        return replace(common, source=tests)
    if isinstance(tests, list | tuple) and tests and all(isinstance(test, str) for test in tests):
        return replace(common, asserts=tuple(tests))
    raise ConfigError(
        "`tests` of a document is neither a text nor a list of assert statements; correct the "
        "expression in `document` of the generation task"
    )


def _text(document: Mapping[str, Any], name: str) -> str:
    value = document.get(name)
    if isinstance(value, list | tuple):
        value = "\n".join(map(str, value))
    return value if isinstance(value, str) else ""


def _program_of(completion: str, document: Mapping[str, Any], tests: Tests) -> str | None:
    """Return the program of a completion; None if it has no code.

    The code is the last fenced Python block that defines a tested name, else all Python blocks joined;
    without a fence, the whole completion. If the code does not define the entry point, it continues
    the prefix, which is put before it. If it does, only the prefix's other definitions are put before
    it, so that the prompt's imports and helpers exist.
    """
    code = _fenced(completion, _tested_names(tests))
    if not code.strip():
        return None
    prefix = _text(document, "prefix")
    if not prefix:
        return code
    if tests.entry_point and _defines(code, tests.entry_point):
        return joined(_without(prefix, tests.entry_point), code)
    return prefix + _indented_as(prefix, code)


def joined(before: str, code: str) -> str:
    """Return two pieces of code one after the other.

    Args:
        before: Code that runs first.
        code: Code after it; its imports from `__future__` are moved to the beginning.

    Returns:
        One program.
    """
    future = _FUTURE.findall(code)
    return "".join([*future, before, "\n", _FUTURE.sub("", code)])


def _fenced(completion: str, names: list[str]) -> str:
    blocks = list(_python_blocks(completion))
    if not blocks:
        return completion
    defining = [code for code in blocks if any(_defines(code, name) for name in names)]
    return defining[-1] if defining else reduce(joined, blocks)


def _python_blocks(text: str) -> Iterator[str]:
    """Yield fenced blocks tagged Python or without a tag; the last one may lack its end."""
    fence, kind, lines = "", "", list[str]()
    for line in text.splitlines(keepends=True):
        opening = _FENCE.match(line)
        if fence and opening and opening[1].startswith(fence) and not line.strip(" \t\r\n`~"):
            if kind in _PYTHON:
                yield "".join(lines)
            fence, lines = "", []
        elif fence:
            lines.append(line)
        elif opening:
            fence, kind = opening[1], opening[2].lower()
    if fence and kind in _PYTHON:
        yield "".join(lines)


def _tested_names(tests: Tests) -> list[str]:
    """Return the entry point, or the functions that the tests call."""
    if tests.entry_point:
        return [tests.entry_point]
    return list(dict.fromkeys(_called_names("\n".join(tests.asserts) or tests.source)))


def _called_names(source: str) -> Iterator[str]:
    for node in ast.walk(_parsed(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id


def _parsed(source: str) -> ast.Module:
    """Return the syntax tree of some code; an empty one if it is not valid."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ignores warnings about backslashes in strings
        try:
            return ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return ast.Module([], [])


def _defines(code: str, name: str) -> bool:
    """Return whether code defines a name, judged by its text: it may be invalid and must not be run."""
    escaped = re.escape(name)
    return re.search(_DEFINITION.format(escaped, escaped), code, re.M) is not None


def _without(prefix: str, name: str) -> str:
    """Return the prefix without the definition of `name`; empty if it is not valid code."""
    others = [node for node in _parsed(prefix).body if getattr(node, "name", None) != name]
    return ast.unparse(ast.Module(others, []))


def _indented_as(prefix: str, code: str) -> str:
    """Return code that continues the prefix, with the prefix's indentation if it has none."""
    first = next(line for line in code.splitlines() if line.strip())
    body = prefix.rstrip("\n").rsplit("\n", 1)[-1]
    indentation = body[: len(body) - len(body.lstrip())]
    if first[:1].isspace() or not indentation or not prefix.endswith("\n"):
        return code
    return "".join(f"{indentation}{line}" for line in code.splitlines(keepends=True))


PROGRAM = VerifierKind(_verify, _canonical)
