"""What tests may do with a program in both runs, and what is said when it is wrong."""

import pytest

from evaluation.verification.sandbox.model import FORGED, UNGUARDED, Limits, Outcome, Tests
from evaluation.verification.sandbox.run import run_program
from tests.verification.sandbox.modes import needs_sandbox

pytestmark = needs_sandbox


def _run(program: str, *asserts: str, **tests: str) -> Outcome:
    return run_program(program, Tests(asserts=asserts, **tests), Limits(seconds=5))  # type: ignore[arg-type]


_NODE = """
class Node:
    def __init__(self, value):
        self.value, self.left, self.right = value, None, None
def height(node):
    return 0 if node is None else 1 + max(height(node.left), height(node.right))
"""
_CHECK = """
import math
def close(a, b):
    return math.isclose(a, b)
def check(candidate):
    assert candidate(1) == 2
    for n in range(3):
        assert close(candidate(n), n + 1), "not close"
"""


@pytest.mark.parametrize(
    ("program", "asserts", "tests"),
    [
        (_NODE, ["assert height(root) == 2", "assert height(None) == 0"], {"setup": "root = Node(1)\nroot.left = Node(2)"}),
        ("def f(x): x.append(3); x[0].clear(); return x", ["y = [[1], 2]\nz = f(y)\nassert z is y and y == [[], 2, 3]"], {}),
        ("def f(d): d['a'] = d", ["y = {}\nf(y)\nassert y['a'] is y"], {}),
        ("def f(a, b): a.append(1); return b", ["y = []\nassert f(y, y) is y and y == [1]"], {}),
        ("def f(g, xs): return [g(x) for x in xs]", ["assert f(lambda x: x * 2, [1, 2]) == [2, 4]", "assert f(len, ['a']) == [1]"], {}),
        ("def f(g): return g(g)", ["assert f(lambda g: 5) == 5"], {}),
        ("def f(): return lambda x: x + 1", ["assert f()(2) == 3"], {}),
        ("def f(n): yield from range(n)", ["assert list(f(3)) == [0, 1, 2]", "assert next(f(1)) == 0"], {}),
        ("def f(x): return x.items()", ["assert set(f({1: 2})) == {(1, 2)}", "assert len(f({1: 2})) == 1"], {}),
        ("def f(x): raise ValueError('no ' + x)", ["try:\n    f('a')\nexcept ValueError as e:\n    assert str(e) == 'no a'"], {}),
        ("class E(KeyError): pass\ndef f(x): raise E(x)", ["try:\n    f('a')\nexcept KeyError as e:\n    assert e.args == ('a',)"], {}),
        ("from collections import Counter, OrderedDict, deque\ndef f(x): return Counter(x), OrderedDict(a=1), deque(x)", ["c, o, d = f('aab')\nassert c == {'a': 2, 'b': 1} and list(o) == ['a'] and d.pop() == 'b'"], {}),
        ("from collections import namedtuple\nP = namedtuple('P', 'x y')\ndef f(): return [P(1, 2)]", ["assert f() == [(1, 2)]"], {}),
        ("from math import isclose\ndef f(): return 1.0", ["assert isclose(f(), 1.0)"], {}),
        ("import numpy as np\ndef f(x): return np.cumsum(x)", ["assert np.allclose(f([1, 2]), [1, 3])"], {}),
        ("import numpy as np\ndef f(x): x[:] = 0; return np.float32(2)", ["a = np.ones(3)\nassert type(f(a)) is np.float32 and a.sum() == 0"], {"setup": "import numpy as np"}),
        ("def f(x): return math.floor(x)", ["assert f(1.5) == 1"], {"setup": "import math"}),
        ("def f(x): return x", ["for v in (None, True, -0.0, 1j, b'\\0', '\\ud800', ..., {1: (2, frozenset([3]))}, {4}, 10 ** 5000, range(3), bytearray(b'x')):\n    assert f(v) == v and type(f(v)) is type(v)", "n = f(float('nan'))\nassert n != n", "assert f(float('-inf')) == float('-inf')"], {}),
        ("def sum(a, b): return a + b", ["assert sum(1, 2) == 3"], {}),
        ("import threading, time, re, heapq, dataclasses, typing\n@dataclasses.dataclass\nclass P:\n    x: typing.Optional[int] = None\ndef f(): return P(3)", ["assert f().x == 3"], {}),
        ("def f(x): return x + 1\nif __name__ == '__main__': raise ValueError", [], {"source": _CHECK, "entry_point": "f"}),
        ("def check(x): return x", [], {"source": "for x in (1, 2):\n    assert check(x) == x", "entry_point": "check"}),
        ("def check(x): return x + 1", [], {"source": _CHECK, "entry_point": "check"}),
        ("LIMIT = 3", ["assert LIMIT == 3"], {}),
        ("def f(n): return 0 if n == 0 else f(n - 1)", ["assert f(900) == 0"], {}),
        ("print('x' * 10)\ndef f(): return input", ["assert callable(f())"], {}),
    ],
)  # fmt: skip
def test_right_programs_pass(program: str, asserts: list[str], tests: dict[str, str]) -> None:
    assert _run(program, *asserts, **tests) == Outcome(True)


@pytest.mark.parametrize(
    ("program", "test", "reason"),
    [
        ("def f(x): return x + 1", "assert f(2) == 4", "`assert f(2) == 4`: f(2) gave 3"),
        ("def f(x): return 10 ** 9999", "assert f(2) == 4", "`assert f(2) == 4`: f(2) gave an integer of 33216 bits"),
        ("def f(x): return 1 / x", "assert f(0) == 4", "`assert f(0) == 4`: the program raises ZeroDivisionError: division by zero"),
        ("class Odd(Exception): pass\ndef f(x): raise Odd('so')", "assert f(0) == 4", "`assert f(0) == 4`: the program raises Odd: so"),
        ("def f(x): return None", "assert f(0) < 4", "`assert f(0) < 4`: TypeError: '<' not supported between instances of 'NoneType' and 'int'; f(0) gave None"),
        ("def g(x): return 1", "assert f(0) == 4", "the program does not define f"),
        ("def f(x) return 1", "assert f(0) == 4", "the program raises SyntaxError: expected ':' (<program>, line 1)"),
        ("import torch_of_nowhere", "assert f(0) == 4", "the program raises ModuleNotFoundError: No module named 'torch_of_nowhere'"),
        ("import os\ndef f(x): os._exit(3)", "assert f(0) == 4", "the tests ended before the last one in `assert f(0) == 4` (exit code 3)"),
        ("def f(x): return object()", "assert f(0) == 4", None),
        ("def f(x): return bytes(99 << 20)", "assert f(0) == 4", None),
        ("def f(x): return 'a' * 999", "assert f('b' * 999) == 4", None),
    ],
)  # fmt: skip
def test_the_failing_assertion_is_told(program: str, test: str, reason: str | None) -> None:
    outcome = _run(program, test)
    assert outcome.passed is False
    assert len(outcome.reason) < 1000
    if reason is not None:
        assert outcome.reason == reason


def test_the_failing_assertion_of_a_source_is_told() -> None:
    outcome = _run("def f(n): return 2", source=_CHECK, entry_point="f")
    assert outcome.reason == "`assert close(candidate(n), n + 1), 'not close'`: f(0) gave 2"


@pytest.mark.parametrize(
    ("tests", "reason"),
    [
        (Tests(asserts=("assert f(1) == (",)), "'(' was never closed"),
        (Tests(asserts=("import nothing_there\nassert f(1) == 2",)), "nothing_there"),
        (Tests(asserts=("assert f(1) == 2",), setup="1 / 0"), "ZeroDivisionError"),
        (Tests(source="x = 1", entry_point="f"), "nothing of the program"),
        (Tests(source="if __name__ == '__main__':\n    assert f(1) == 2"), "nothing of the program"),
        (Tests(asserts=("assert f(1) == 2",), given="import nothing_there"), "nothing_there"),
        (Tests(asserts=("assert f('\0') == 2",)), "null bytes"),
    ],
)  # fmt: skip
def test_tests_that_cannot_be_run_are_no_failure(tests: Tests, reason: str) -> None:
    outcome = run_program("def f(x): return x + 1", tests, Limits())
    assert outcome.passed is None
    assert outcome.reason.startswith("the tests cannot be run: ")
    assert reason in outcome.reason


@pytest.mark.parametrize(
    "program", ["f = None", "f = 5", "", "raise ImportError", "import sys\nsys.modules.clear()", "from os import getpid as f"]
)  # fmt: skip
def test_a_program_cannot_choose_not_to_be_judged(program: str) -> None:
    assert _run(program, "assert f(1) == 2").passed is False
    assert _run(program, "assert max(1, 2) == 2").passed is False


def test_nothing_is_left_for_the_next_program() -> None:
    first = "import math, sys\nmath.pi = 4\nsys.stash = 1\nimport builtins\nbuiltins.stash = 1\ndef f(x): return x"
    assert _run(first, "assert f(1) == 1") == Outcome(True)
    second = "import math, sys\ndef f(x): return math.pi < 4 and not hasattr(sys, 'stash') and 'stash' not in dir(__builtins__)"
    assert _run(second, "assert f(1)") == Outcome(True)


_VECTOR = """
from dataclasses import dataclass
@dataclass
class V:
    x: int
    def __add__(self, other): return V(self.x + other.x)
def make(x): return V(x)
"""
_LIES = (
    "class E:\n    def __eq__(self, other): return True\n    __sub__ = __rsub__ = lambda a, b: 0\n"
)


@pytest.mark.parametrize(
    ("program", "test", "note"),
    [
        (_VECTOR, "assert V(1) + V(2) == V(3)", UNGUARDED),
        (_VECTOR, "assert make(1) == make(1)", UNGUARDED),
        (_VECTOR, "assert V(3).x == 3", ""),
        (_VECTOR, "v = V(1)\nw = v + v\nassert w != 2", UNGUARDED),
        (_VECTOR, "import copy\nv = make(1)\nassert copy.deepcopy(v) == v", UNGUARDED),
        ("class v(float):\n    pass\nclass w:\n    def __mul__(self, n): return n * [self]", "assert len(w() * 3) == 3", UNGUARDED),
        (f"{_LIES}def f(x): return E()", "assert f(3) == 4", FORGED),
        (f"{_LIES}def f(x): return E()", "assert abs(f(3) - 4) < 1", FORGED),
        ("class f(int):\n    def __eq__(self, other): return True", "assert f(3) == 4", FORGED),
        ("f = max", "assert f(3, 4) == 4", ""),
        ("from math import gcd as f", "assert f(12, 8) == 4", ""),
        ("def f(x): return x", "assert f.__name__ == 'f'", ""),
        ("def f(x): yield x", "import json\nassert json.dumps(list(f(3))) == '[3]'", ""),
        ("def f(n): return [f(n - 1)] if n else 1", "x = f(900)\nwhile isinstance(x, list): x = x[0]\nassert x == 1", ""),
        ("from datetime import date\ndef f(n): return date(2024, 2, n)", "import datetime\nassert f(29) == datetime.date(2024, 2, 29)", ""),
        ("class Odd(Exception): pass\ndef f(x): raise Odd('no')", "try:\n    f(3)\nexcept Odd as e:\n    assert str(e) == 'no'", UNGUARDED),
        ("import json\ndef f(x): return json.loads(x)", "import json\ntry:\n    f('{')\n    assert False\nexcept json.JSONDecodeError:\n    pass", ""),
        ("def f(g): return g.__code__.co_argcount", "assert f(lambda a, b: 0) == 2", UNGUARDED),
        ("def sum(a, b): return a + b", "assert sum(3, 4) == 7", ""),
        ("def abs(x): return 0\ndef f(x): return 9", "assert abs(f(3) - 4) < 1", FORGED),
        ("total = 0\ndef f(x):\n    global total\n    total += x", "f(3)\nassert total == 3", UNGUARDED),
        ("class math:\n    def isclose(*a): return True\ndef f(x): return 9", "assert math.isclose(f(3), 4)", FORGED),
    ],
)  # fmt: skip
def test_what_a_verdict_rests_on(program: str, test: str, note: str) -> None:
    outcome = _run(program, test)
    assert (outcome.passed, outcome.note) == (note != FORGED, note)


def test_the_program_uses_what_the_tests_set_up() -> None:
    """But for what only the tests use: that would tell what is expected."""
    setup = "import math\nLIMIT = 3\nWANTED = {2: 'two'}\ndef least(x): return min(x, LIMIT)"
    assert _run("def f(x): return least(math.ceil(x))", "assert f(7.5) == 3", setup=setup).passed
    found = "def f(x): return next(v for v in globals().values() if type(v) is dict and x in v)[x]"
    outcome = _run(found, "assert f(2) == WANTED[2]", setup=setup)
    assert (outcome.passed, outcome.note) == (False, FORGED)


_WORKERS = """
import asyncio, queue, threading
from concurrent.futures import ThreadPoolExecutor
def f(xs):
    asked, found = queue.Queue(), {}
    def work():
        while (x := asked.get()) is not None:
            found[x] = x * x
    worker = threading.Thread(target=work)
    worker.start()
    for x in [*xs, None]:
        asked.put(x)
    worker.join()
    return found
def g(xs):
    async def one(x):
        await asyncio.sleep(0.001)
        return await asyncio.to_thread(lambda: x + 1)
    async def every():
        return await asyncio.gather(*map(one, xs))
    with ThreadPoolExecutor() as pool:
        return [*pool.map(lambda x: x - 1, asyncio.run(every()))]
"""


def test_threads_and_asyncio_need_nothing_of_the_kernel() -> None:
    assert _run(_WORKERS, "assert f([2, 3]) == {2: 4, 3: 9}", "assert g([1, 2]) == [1, 2]").passed


@pytest.mark.parametrize(
    "call", ["open('/etc/passwd')", "__import__('socket').socket()", "__import__('os').fork()"]
)
def test_what_a_program_is_not_given_is_told(call: str) -> None:
    outcome = _run(f"def f(x): return {call}", "assert f(1) == 2")
    assert outcome.passed is False
    assert "programs are run without files, network, threads and other processes" in outcome.reason


def test_process_numbers_do_not_tell_what_became_of_the_last_program() -> None:
    """Another one of them runs once, the other twice."""
    show = "import os\ndef f(): return os.getpid()"
    seen = []
    for program in ("def f(): return 1", "def f(): return 0", "def f(): 1 / 0"):
        _run(program, "assert f() == 1")
        reason = _run(show, "assert f() == 0").reason
        seen.append(int(reason.rpartition(" ")[2]))
    assert seen[1] - seen[0] == seen[2] - seen[1]
