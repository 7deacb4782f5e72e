"""Verifier of the kind `program`: runs a completion's Python code with the tests, in the sandbox.

Fields of the document: `tests` (a list of assert statements, or one source); optional `setup` (run
before the tests), `entry_point` (the function that the source's `check` is called with), `prefix` (code
in the prompt, such as HumanEval's signature and docstring), `gold` (a correct program) and
`livecodebench` (the metadata of one of its problems, whose `tests` are then as in its rows).
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from evaluation.errors import ConfigError
from evaluation.escaping import without_surrogates
from evaluation.reading.programs import Wanted, read_program
from evaluation.reading.python_code import parsed
from evaluation.settings.verifiers import Program
from evaluation.verification.livecodebench import METADATA, as_function, method_of, problem_tests
from evaluation.verification.sandbox.model import Limits, Tests
from evaluation.verification.sandbox.run import run_program
from evaluation.verification.verdicts import JudgedKind, Verdict

_MOST_CHARACTERS = 1 << 20
"""Longest completion that is run."""


def _verify(verifier: Program, document: Mapping[str, Any], completion: str) -> Verdict:
    """Run a completion's program with the prompt's tests; credit is None if the sandbox failed."""
    tests = _read_tests(document)
    if len(completion) > _MOST_CHARACTERS:
        return Verdict(credit=0.0, reason=f"it is longer than {_MOST_CHARACTERS:,} characters")
    program = read_program(completion, _wanted(document, tests))
    if program is None:
        return Verdict(credit=0.0, reason="it has no code")
    answer = without_surrogates(program)
    if METADATA in document and method_of(document) is None:
        program = as_function(program)
    limits = Limits(seconds=float(verifier.seconds), memory_mb=int(verifier.memory_mb))
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


def _wanted(document: Mapping[str, Any], tests: Tests) -> Wanted:
    return Wanted(_tested_names(tests), _text(document, "prefix"), tests.entry_point)


def _tested_names(tests: Tests) -> list[str]:
    """Return the entry point, or the functions that the tests call."""
    if tests.entry_point:
        return [tests.entry_point]
    return list(dict.fromkeys(_called_names("\n".join(tests.asserts) or tests.source)))


def _called_names(source: str) -> Iterator[str]:
    tree = parsed(source)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id


PROGRAM = JudgedKind(_verify, _canonical)
