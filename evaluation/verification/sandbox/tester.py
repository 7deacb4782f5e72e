"""The guarded run: the tester's process runs the tests on a program that runs in another process.

It decides whether the program's values are really the expected ones. It is sandboxed too, as tests are
foreign code. But no line of the program runs in it, and the meaning of the tests' names is fixed before
the program starts (`static_analysis.py`). Only this process has the pipe to which the verdict is written.
"""

import ast
import importlib
import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from evaluation.verification.sandbox.model import FORGED, UNGUARDED, ProgramVerdict, Tests
from evaluation.verification.sandbox.peer import Broken, Peer
from evaluation.verification.sandbox.plain_run import runs
from evaluation.verification.sandbox.proxy import Log, Proxy
from evaluation.verification.sandbox.reasons import Missing, Unusable, failure_reason, named
from evaluation.verification.sandbox.static_analysis import analyse


def serve(tests: Tests, read: int, write: int, output: int) -> None:
    """Run all tests; write the number of each before it begins, and the verdict as JSON.

    Args:
        tests: Tests of the program.
        read: Descriptor of the candidate's answers.
        write: Descriptor of the questions.
        output: Descriptor that the caller reads.
    """
    try:
        run = _GuardedRun(tests, read, write)
    except Unusable as reason:
        verdict = _unusable(reason)
    else:
        verdict = run.verdict(lambda number: os.write(output, b"%d\n" % number))
    data = json.dumps(asdict(verdict)).encode() + b"\n"
    while data:
        data = data[os.write(output, data) :]


class _GuardedRun:
    def __init__(self, tests: Tests, read: int, write: int) -> None:
        self._tests, self._setup = tests, _parsed(tests.setup)
        self._tree = _parsed("\n".join(tests.asserts) or tests.source)
        self._analysis = analyse(self._setup, self._tree, tests.entry_point)
        self._log = log = Log(bool(self._analysis.objects))
        self._peer = Peer(read, write, _called_back, lambda p, n: Proxy(p, n, log), draws=True)

    def verdict(self, begin: Callable[[int], object]) -> ProgramVerdict:
        current = ""
        try:
            defined = self._program_names()
            names = self._test_globals(defined)
            for number, (text, test) in enumerate(
                runs(self._tests, self._tree, names, lambda: defined[self._tests.entry_point])
            ):
                current = text
                begin(number)
                test()
            self._peer.check_silence()
            self._check(defined)
        except BaseException as reason:  # noqa: BLE001 - tests may raise anything
            return self._failed(reason, current)
        if self._log.words:
            return ProgramVerdict(True, "its objects are compared by itself", UNGUARDED)
        return ProgramVerdict(True)

    def _check(self, defined: dict[str, Any]) -> None:
        if self._peer.broken:  # and a test caught it
            raise Broken(self._peer.broken)
        if not defined:
            raise Missing("any name that the tests use")
        if not self._log.questions and all(type(value) is Proxy for value in defined.values()):
            raise Unusable("they ask nothing of the program")

    def _failed(self, reason: BaseException, current: str) -> ProgramVerdict:
        """Return the verdict after an exception; tests are at fault only if the program cannot be."""
        own = getattr(reason, "of_the_program", "")
        if isinstance(reason, Unusable) or (isinstance(reason, ImportError) and not own):
            return _unusable(reason)
        objects = self._analysis.objects or self._peer.sent
        if objects:
            return ProgramVerdict(
                True, f"its values are not looked at from outside: {objects}", UNGUARDED
            )
        if self._peer.broken:
            what = f"the program cannot be judged: {self._peer.broken}"
            return ProgramVerdict(False, f"`{current}`: {what}" if current else what, FORGED)
        return ProgramVerdict(
            False, failure_reason(reason, current, self._tree, self._log.last_answer), FORGED
        )

    def _program_names(self) -> dict[str, Any]:
        """Return the names that the program defines; it is at fault for any exception here."""
        try:
            given = {name: self._peer.ask(("defined", name)) for name in self._analysis.names}
            found = {n: _resolved(n, *rest) for n, rest in given.items() if rest[0] != "absent"}
        except Exception as reason:
            reason.__dict__.setdefault("of_the_program", type(reason).__name__)
            raise
        entry = self._tests.entry_point
        if entry and entry not in found:
            raise Missing(entry)
        return found

    def _test_globals(self, defined: dict[str, Any]) -> dict[str, Any]:
        """Return the global names of the tests: the program's, overridden by those of the tests' code."""
        modules = {name: importlib.import_module(m) for name, m in self._analysis.modules.items()}
        names = {**defined, **modules, **_given(self._tests.given), "__name__": "tests"}
        if self._tests.entry_point:
            names[self._tests.entry_point] = defined[self._tests.entry_point]
        try:
            exec(compile(self._setup, "<setup>", "exec"), names)
        except Exception as reason:
            if set(self._analysis.names) & {
                n.id for n in ast.walk(self._setup) if isinstance(n, ast.Name)
            }:
                raise
            raise Unusable(named(reason)) from None
        return names


def _unusable(reason: Exception) -> ProgramVerdict:
    text = str(reason) if isinstance(reason, Unusable) else named(reason)
    return ProgramVerdict(None, f"the tests cannot be run: {text}")


def _parsed(source: str) -> ast.Module:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as reason:
        raise Unusable(f"{type(reason).__name__}: {reason}") from None


def _called_back(question: Any) -> Any:
    """Call a function that a test passed to the program; a program may ask for nothing else."""
    what, function, arguments, given = question
    if what != "call" or not callable(function) or type(function) is Proxy:
        raise TypeError("only functions that the tests passed can be called")
    return function(*arguments, **given)


def _resolved(name: str, kind: str, *rest: Any) -> Any:
    """Return the value of a name; modules and their members are imported anew by the tester."""
    if kind == "own":
        return rest[0]
    home = str(rest[0])
    if home.partition(".")[0] not in {*sys.stdlib_module_names, "numpy"}:
        raise ImportError(f"the tests use `{name}`, which the program imports from elsewhere")
    module = importlib.import_module(home)
    return module if kind == "module" else getattr(module, name)


def _given(source: str) -> dict[str, Any]:
    """Return the names that the given code defines; none if it is incomplete (a mere signature)."""
    names: dict[str, Any] = {"__name__": "tests"}
    try:
        code = compile(source, "<given>", "exec")
    except (SyntaxError, ValueError):
        return {}
    try:
        exec(code, names)
    except Exception as reason:  # noqa: BLE001 - it may raise anything
        raise Unusable(named(reason)) from None
    return names
