"""Programs that know how the plain run tells its verdict, and pass it: the guarded run finds them."""

import pytest

from evaluation.verification.sandbox.model import FORGED, Limits, Tests
from evaluation.verification.sandbox.run import run_program
from tests.verification.sandbox.modes import needs_sandbox

pytestmark = needs_sandbox
_PASSES_PLAINLY = """
import os
try:
    os.fstat(6)  # only the plain run has so many descriptors
    os.write(5, b"0\\nend\\n")
    os.write(5, os.read(6, 32) + b"\\n")
    os._exit(0)
except OSError:
    pass
"""
_ASSERTS = ("assert f(3) == 4", "assert f([1, 2]) == [2, 1]")
_PROGRAMS = {
    "a wrong value": "def f(x): return 9",
    "an object equal to all": "class E:\n    __eq__ = lambda a, b: True\ndef f(x): return E()",
    "an iterator": "def f(x): return iter([])",
    "an exception that skips": "class SkipTest(Exception): pass\ndef f(x): raise SkipTest",
    "an exception of imports": "def f(x): raise ImportError('x')",
    "an exception of nowhere": "class E(Exception): pass\nE.__module__ = 'winreg'\ndef f(x): raise E",
    "a name that is missing": "def f(x): return missing",
    "an end": "def f(x): os._exit(0)",
    "nothing": "",
    "no Python": "raise SyntaxError('x')",
    "deep nesting": "def f(x):\n    y = []\n    for _ in range(20000): y = [y]\n    return y",
    "too much": "def f(x): return bytes(200 << 20)",
    "a module": "import math as f",
    "a class of elsewhere": "class f: pass\nf.__module__ = 'unittest.mock'",
    "a mock": "from unittest.mock import MagicMock as f",
}


@pytest.mark.parametrize("name", _PROGRAMS)
def test_the_guarded_run_finds_it(name: str) -> None:
    program = _PASSES_PLAINLY + _PROGRAMS[name]
    outcome = run_program(program, Tests(asserts=_ASSERTS), Limits(seconds=5))
    assert (outcome.passed, outcome.note) == (False, FORGED)


@pytest.mark.parametrize(
    ("program", "test"),
    [
        ("def f(x): return 9\nx = y = 9", "x = 3\ny = 4\nassert f(x) == y"),
        ("def f(x): return 9\ndef len(x): return 4", "assert len(f(3)) == 4"),
        ("def f(x): return 9\ndef range(n): return []", "for i in range(3):\n    assert f(i) == i"),
        ("def f(x):\n    x.clear()\n    return []", "a = [1]\nassert f(a) == [2] and a == [1]"),
    ],
)
def test_names_of_the_tests_are_theirs(program: str, test: str) -> None:
    outcome = run_program(_PASSES_PLAINLY + program, Tests(asserts=(test,)), Limits(seconds=5))
    assert (outcome.passed, outcome.note) == (False, FORGED)


def test_tests_about_objects_leave_it_unguarded() -> None:
    """Which is why such passes are counted."""
    tests = Tests(asserts=("import inspect\nassert f(3) == 4",))
    outcome = run_program(f"{_PASSES_PLAINLY}def f(x): return 9", tests, Limits(seconds=5))
    assert (outcome.passed, outcome.note) == (True, "unguarded")
