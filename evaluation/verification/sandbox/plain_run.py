"""The plain run: program and tests in one interpreter, as the tests' authors meant it.

It decides whether a program is right as Python. The program controls the process: it has passed only
if a secret that is sent after the last test is written back, and `tester.py` looks at the values
once more, from outside.
"""

import ast
import json
import linecache
import os
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from evaluation.verification.sandbox.model import Tests
from evaluation.verification.sandbox.reasons import (
    FILE,
    PROGRAM,
    TESTS,
    failure_reason,
    is_of_the_program,
)

END = b"end"
SECRET_BYTES = 32


def serve(source: bytes, tests: Tests, secret: int, output: int) -> None:
    """Run all tests; write the number of each before it begins, and what came of them.

    Args:
        source: The program, as UTF-8.
        tests: Tests of the program.
        secret: Descriptor from which the secret is read after the last test.
        output: Descriptor that the caller reads.
    """
    write, read = os.write, os.read  # the program may replace them
    failure = _failure(source, tests, lambda number: write(output, b"%d\n" % number))
    if failure:
        write(output, f"{json.dumps(failure)}\n".encode())
        return
    write(output, END + b"\n")
    write(output, read(secret, SECRET_BYTES) + b"\n")


def _failure(source: bytes, tests: Tests, begin: Callable[[int], object]) -> dict[str, Any]:
    """Why the tests fail, and whether the tests themselves seem to be at fault; empty if they pass."""
    where, tree, at_fault = "", ast.Module([], []), True
    try:
        tree = ast.parse("\n".join(tests.asserts) or tests.source)
        text = source.decode("utf-8", "surrogatepass")
        names = new_module(text)
        is_set_up = set_up(tests.setup, names)
        at_fault = False
        load(text, names)
        if not is_set_up:
            exec(compile(tests.setup, "<setup>", "exec", dont_inherit=True), names)
        entry = tests.entry_point
        for number, (test, run) in enumerate(runs(tests, tree, names, lambda: eval(entry, names))):
            where = test
            begin(number)
            run()
    except BaseException as reason:  # noqa: BLE001 - whatever a program raises
        at_fault |= isinstance(reason, ImportError) and not is_of_the_program(reason)
        return {"reason": failure_reason(reason, where, tree), "at_fault": at_fault}
    return {}


def runs(
    tests: Tests, tree: ast.Module, names: dict[str, Any], entry: Callable[[], Any]
) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield each test as a text for the reason and a function that runs it.

    Args:
        tests: Tests of the program.
        tree: All tests, parsed.
        names: What the tests see; they may change it.
        entry: Gives what a `check` is called with.

    Yields:
        The text of an assert statement, empty for a whole source, and the function.
    """
    for text in tests.asserts:
        code = compile(text, TESTS, "exec", dont_inherit=True)
        yield text, lambda code=code: exec(code, names)  # type: ignore[misc]
    if tests.asserts:
        return
    code = compile(tree, TESTS, "exec", dont_inherit=True)
    candidate = entry() if tests.entry_point else None
    yield "", lambda: exec(code, names)
    is_check = any(isinstance(node, ast.FunctionDef) and node.name == "check" for node in tree.body)
    if tests.entry_point and is_check:
        yield "", lambda: names["check"](candidate)


def new_module(text: str) -> dict[str, Any]:
    """Make an empty module for a program.

    Args:
        text: The program, for tracebacks.

    Returns:
        The module's names.
    """
    module = ModuleType(PROGRAM)
    module.__file__ = FILE
    sys.modules[PROGRAM] = sys.modules["__main__"] = module
    linecache.cache[FILE] = (len(text), None, text.splitlines(keepends=True), FILE)
    return vars(module)


def load(text: str, names: dict[str, Any]) -> None:
    """Run a program.

    Args:
        text: The program.
        names: The names of its module.
    """
    exec(compile(text, FILE, "exec", dont_inherit=True), names)


def set_up(setup: str, names: dict[str, Any]) -> bool:
    """Run what the tests set up, before the program.

    Args:
        setup: The tests' setup, as Python.
        names: The names of the program's module.

    Returns:
        False if it needs the program.
    """
    try:
        exec(compile(setup, "<setup>", "exec", dont_inherit=True), names)
    except NameError:
        return False
    return True
