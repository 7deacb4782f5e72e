"""The plain run: runs program and tests in one interpreter, as the tests' authors intended.

It decides whether a program passes its tests as ordinary Python. The program controls this process, so
two things guard the result: the process must write back a secret that is sent after the last test, and
`tester.py` checks the values once more from another process.
"""

import ast
import importlib
import json
import linecache
import os
import sys
from collections.abc import Callable
from types import CodeType, ModuleType
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
_CANDIDATE = "__candidate__"


def serve(source: bytes, tests: Tests, secret: int, output: int) -> None:
    """Run all tests; write the number of each before it begins, and the result at the end.

    Args:
        secret: Descriptor from which the secret is read after the last test.
    """
    write, read = os.write, os.read  # the program may replace them, and all that has a name
    failure = _failure(source, tests, lambda number: write(output, b"%d\n" % number))
    if failure:
        write(output, f"{json.dumps(failure)}\n".encode())
        return
    write(output, END + b"\n")
    write(output, read(secret, SECRET_BYTES) + b"\n")


def _failure(source: bytes, tests: Tests, begin: Callable[[int], object]) -> dict[str, Any]:
    """Return why the tests fail, and whether they seem to be at fault themselves; empty if they pass."""
    where, tree, at_fault = "", ast.Module([], []), True
    try:
        tree = ast.parse("\n".join(tests.asserts) or tests.source)
        text = source.decode("utf-8", "surrogatepass")
        names = new_module(text)
        is_set_up = set_up(tests.setup, names)
        steps, run = enumerate(compiled(tests, tree)), exec
        setup = _code("" if is_set_up else tests.setup, "<setup>")
        at_fault = False
        load(text, names)
        run(setup, names)
        for number, (where, code) in steps:  # noqa: B007 - the last one is reported
            begin(number)
            run(code, names)
    except BaseException as reason:  # noqa: BLE001 - a program may raise anything
        at_fault |= isinstance(reason, ImportError) and not is_of_the_program(reason)
        return {"reason": failure_reason(reason, where, tree), "at_fault": at_fault}
    return {}


def compiled(tests: Tests, tree: ast.Module) -> list[tuple[str, CodeType]]:
    """Return each parsed test as its text (empty for a whole source) and its code."""
    if tests.asserts:
        return [(text, _code(text, TESTS)) for text in tests.asserts]
    codes = [_code(tree, TESTS)]
    is_check = any(isinstance(node, ast.FunctionDef) and node.name == "check" for node in tree.body)
    if tests.entry_point and is_check:
        codes.insert(0, _code(f"{_CANDIDATE} = {tests.entry_point}", "<call>"))
        codes.append(_code(f"check({_CANDIDATE})", "<call>"))
    return [("", code) for code in codes]


def _code(source: str | ast.Module, file: str) -> CodeType:
    return compile(source, file, "exec", dont_inherit=True)


def new_module(text: str) -> dict[str, Any]:
    """Return the names of a new module for a program, whose text tracebacks show."""
    module = ModuleType(PROGRAM)
    module.__file__ = FILE
    sys.modules[PROGRAM] = sys.modules["__main__"] = module
    linecache.cache[FILE] = (len(text), None, text.splitlines(keepends=True), FILE)
    return vars(module)


def load(text: str, names: dict[str, Any]) -> None:
    """Run a program."""
    exec(compile(text, FILE, "exec", dont_inherit=True), names)


def set_up(setup: str, names: dict[str, Any]) -> bool:
    """Run the tests' setup before the program; return False if it needs names of the program."""
    try:
        exec(compile(setup, "<setup>", "exec", dont_inherit=True), names)
    except NameError:
        return False
    return True


def preload() -> None:
    """Import modules that programs often use, once for all programs."""
    for name in _OFTEN_USED.split():
        try:
            importlib.import_module(name)
        except ImportError:  # an interpreter built without it
            continue


_OFTEN_USED = """
    abc array ast asyncio bisect bz2 calendar cmath collections contextlib copy ctypes dataclasses
    datetime decimal enum fractions functools hashlib heapq inspect io itertools json keyword lzma
    math numbers operator queue random re reprlib statistics string struct textwrap threading time
    timeit traceback types typing unicodedata warnings zlib
    numpy numpy.linalg numpy.random
"""
