"""Verifier of the kind `program`: the Python code of a completion passes the tests, in the sandbox.

Fields of the document: `tests`, a list of assert statements or one source; optional `setup` (run
before the tests), `entry_point` (what the source's `check` is called with), `prefix` (code that the
prompt gave, as HumanEval's signature and docstring), `gold` (a right program) and `is_program` (whether
completions are programs as they stand).
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
from evaluation.verification.sandbox.model import Limits, Tests
from evaluation.verification.sandbox.run import run_program, run_with_packages
from evaluation.verification.verdicts import Verdict, VerifierKind

_MOST_CHARACTERS = 1 << 20
"""Longer completions are not run."""
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([\w+.-]*)")
_PYTHON = {"", "python", "py", "python3"}
_FUTURE = re.compile(
    r"^from[ \t]+__future__[ \t]+import[ \t]+(?:\([^()]{0,500}\)|[^\n(]*)[^\n]*\n?", re.M
)
_DEFINITION = r"^(?:async[ \t]+def|def|class)[ \t]+{}\b|^{}[ \t]*=(?!=)"


def _verify(verifier: Program, document: Mapping[str, Any], completion: str) -> Verdict:
    """Run a completion's program with the tests of its prompt; credit is None if the sandbox failed."""
    tests = _read_tests(document)
    if len(completion) > _MOST_CHARACTERS:
        return Verdict(credit=0.0, reason=f"it is longer than {_MOST_CHARACTERS:,} characters")
    whole = document.get("is_program") is True
    program = completion if whole else _program_of(completion, document, tests)
    if program is None:
        return Verdict(credit=0.0, reason="it has no code")
    limits = Limits(seconds=float(verifier.seconds), memory_mb=int(verifier.memory_mb))
    if isinstance(verifier, ProgramWithPackages):
        outcome = run_with_packages(verifier.python, program, tests, limits)
    else:
        outcome = run_program(program, tests, limits)
    credit = None if outcome.passed is None else float(outcome.passed)
    answer = program.encode("utf-8", "replace").decode()  # half characters cannot be stored
    return Verdict(credit=credit, answer=answer, reason=outcome.reason, note=outcome.note)


def _canonical(verifier: Program, document: Mapping[str, Any]) -> str | None:
    """The data set's own solution."""
    return _text(document, "gold") if "gold" in document else None


def _read_tests(document: Mapping[str, Any]) -> Tests:
    """The tests of a document in the form that the sandbox takes."""
    tests = document["tests"]
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
    """The program of a completion; None if it has no code.

    Of fenced blocks in Python, the last that defines what is tested, else all of them joined in
    order; without a fence, the completion as it is. A prefix is put before code that only goes on
    from it. Code that defines the entry point itself has the prefix's other definitions before it,
    so that imports and helpers of the prompt are there, as they were when it was written.
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
        before: Code that is run first.
        code: Code after it; its imports from `__future__` are moved to the very beginning.

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
    """Fenced blocks that name Python or no language; the last may lack its end."""
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
    """The entry point, or the functions that the assert statements call."""
    if tests.entry_point:
        return [tests.entry_point]
    return list(dict.fromkeys(_called_names("\n".join(tests.asserts) or tests.source)))


def _called_names(source: str) -> Iterator[str]:
    for node in ast.walk(_parsed(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id


def _parsed(source: str) -> ast.Module:
    """Empty for what is no valid code."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about backslashes in strings
        try:
            return ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return ast.Module([], [])


def _defines(code: str, name: str) -> bool:
    """By its text: the code may not be valid, and must not be run to know."""
    escaped = re.escape(name)
    return re.search(_DEFINITION.format(escaped, escaped), code, re.M) is not None


def _without(prefix: str, name: str) -> str:
    """The prefix without the definition of `name`; empty if it is no valid code."""
    others = [node for node in _parsed(prefix).body if getattr(node, "name", None) != name]
    return ast.unparse(ast.Module(others, []))


def _indented_as(prefix: str, code: str) -> str:
    """A chat answer that goes on from a signature without its indentation is given it."""
    first = next(line for line in code.splitlines() if line.strip())
    body = prefix.rstrip("\n").rsplit("\n", 1)[-1]
    indentation = body[: len(body) - len(body.lstrip())]
    if first[:1].isspace() or not indentation or not prefix.endswith("\n"):
        return code
    return "".join(f"{indentation}{line}" for line in code.splitlines(keepends=True))


PROGRAM = VerifierKind(_verify, _canonical)
