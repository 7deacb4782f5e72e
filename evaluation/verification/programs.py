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
from evaluation.files import without_surrogates
from evaluation.settings.verifiers import Program
from evaluation.verification.livecodebench import METADATA, as_function, method_of, problem_tests
from evaluation.verification.python_programs import chat_program, last_fence, raw_program
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
    program = _program(verifier, document, completion, tests)
    if not program.strip():
        return Verdict(credit=0.0, reason="it has no code")
    answer = without_surrogates(program)
    if METADATA in document and method_of(document) is None:
        program = as_function(program)
    limits = Limits(seconds=float(verifier.seconds), memory_mb=int(verifier.memory_mb))
    outcome = run_program(program, tests, limits)
    credit = None if outcome.passed is None else float(outcome.passed)
    return Verdict(credit=credit, answer=answer, reason=outcome.reason)


def _program(verifier: Program, document: Mapping[str, Any], completion: str, tests: Tests) -> str:
    """Return the program of a completion, with the code that the prompt gave; empty if it has none."""
    prefix = _text(document, "prefix")
    if verifier.raw:
        return raw_program(completion, prefix)
    text = completion.replace("\r\n", "\n")
    if METADATA in document:
        code = last_fence(text)
        return code and f"{prefix}\n{code}"
    return chat_program(text, _tested_names(tests), prefix) if text.strip() else ""


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


def _tested_names(tests: Tests) -> list[str]:
    """Return the entry point, or the functions that the tests call."""
    return [tests.entry_point] if tests.entry_point else list(_called_names(tests))


def _called_names(tests: Tests) -> Iterator[str]:
    try:
        tree = ast.parse("\n".join(tests.asserts) or tests.source)
    except (SyntaxError, ValueError):  # running them will tell
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id


PROGRAM = JudgedKind(_verify, _canonical)
