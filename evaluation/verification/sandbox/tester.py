"""The guarded run: the tester's process runs the tests on a program that runs in another process.

It decides whether the program's values are the expected ones. It is sandboxed too, as tests are foreign
code. But no line of the program runs in it, and the program can only answer calls with plain data, raise
an exception of the standard library, or end. Only this process has the pipe to which the verdict is
written.
"""

import ast
import importlib
import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from evaluation.verification.sandbox.candidate import RAISED, RETURNED
from evaluation.verification.sandbox.channel import Broken, Channel, deeply
from evaluation.verification.sandbox.model import FORGED, ProgramVerdict, Tests, Use
from evaluation.verification.sandbox.plain_data import NotPlainData, Writer, read_values, value_of
from evaluation.verification.sandbox.plain_run import compiled
from evaluation.verification.sandbox.reading import parsed
from evaluation.verification.sandbox.reasons import (
    Missing,
    Unusable,
    failure_reason,
    gave,
    named,
    short,
)

Begin = Callable[[int], object]


def serve(tests: Tests, use: Use, read: int, write: int, output: int) -> None:
    """Run all tests; write the number of each before it begins, and the verdict as JSON."""
    try:
        run = _GuardedRun(tests, use, Channel(read, write))
    except Exception as reason:  # noqa: BLE001 - the program was not asked yet
        verdict = _unusable(named(reason))
    else:
        verdict = run.verdict(lambda number: os.write(output, b"%d\n" % number))
    data = json.dumps(asdict(verdict)).encode() + b"\n"
    while data:
        data = data[os.write(output, data) :]


class _GuardedRun:
    def __init__(self, tests: Tests, use: Use, channel: Channel) -> None:
        self._tests, self._use, self._channel = tests, use, channel
        self._calls, self._last, self._broken = 0, "", ""
        self._text = "\n".join((*tests.asserts, tests.source))
        self._tree = ast.parse("\n".join(tests.asserts) or tests.source)
        self._setup = compile(tests.setup, "<setup>", "exec", dont_inherit=True)
        self._steps = compiled(tests, self._tree)
        self._own = _own_names(tests, use)

    def verdict(self, begin: Begin) -> ProgramVerdict:
        if self._use.needs:  # only whether they can be run at all was in question
            return ProgramVerdict(True)
        current = ""
        try:
            names = self._names()
            for number, (text, code) in enumerate(self._steps):
                current = text
                begin(number)
                exec(code, names)
            self._channel.check_silence()
        except BaseException as reason:  # noqa: BLE001 - tests may raise anything
            return self._failed(reason, current)
        if self._broken:  # and a test caught it
            return self._failed(Broken(self._broken), "")
        if not self._calls:
            return _unusable("they ask nothing of the program")
        return ProgramVerdict(True)

    def _failed(self, reason: BaseException, current: str) -> ProgramVerdict:
        """Return the verdict after an exception; tests are at fault only if the program cannot be."""
        if isinstance(reason, Unusable):
            return _unusable(str(reason))
        if isinstance(reason, Broken):
            what = f"the program cannot be judged: {reason}"
            return ProgramVerdict(False, f"`{current}`: {what}" if current else what, FORGED)
        return ProgramVerdict(
            False, failure_reason(reason, current, self._tree, self._last), FORGED
        )

    def _names(self) -> dict[str, Any]:
        """Return the global names of the tests: functions that ask the program, and their own names."""
        defined = self._ask([], (), {})
        functions = {name: self._function(name) for name in self._use.functions if name in defined}
        classes = {name: self._instance(name) for name in self._use.classes if name in defined}
        wanted = [*self._use.functions, *self._use.classes]
        if missing := [name for name in wanted if name not in {**functions, **classes}]:
            raise Missing(missing[0])
        names = {**functions, **classes, **self._own, "__name__": "tests"}
        try:
            exec(self._setup, names)
        except Exception as reason:
            if set(wanted) & set(self._setup.co_names):
                raise
            raise Unusable(named(reason)) from None
        return names

    def _instance(self, name: str) -> Callable[[], Any]:
        """Return a stand-in for a class whose methods alone are called, with an instance of its own."""

        class Methods:
            def __getattr__(_, method: str) -> Callable[..., Any]:
                return self._function(name, method)

        return Methods

    def _function(self, *path: str) -> Callable[..., Any]:
        def function(*arguments: Any, **named: Any) -> Any:
            self._calls += 1
            answer = self._ask(path, arguments, named)
            shown = ", ".join(map(short, arguments))
            self._last = gave(path[-1], shown, short(answer))
            return answer

        function.__name__ = path[-1]
        return function

    def _ask(self, path: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Return what the program answers; raise Broken, for good, if it is no answer."""
        try:
            if self._broken:
                raise Broken(self._broken)
            kind, answer = self._exchanged(path, (arguments, named))
        except Broken as reason:
            self._broken = str(reason)
            raise
        if kind == RAISED:
            raised, arguments, name = answer
            if raised is StopIteration and raised.__name__ not in self._text:
                raised = RuntimeError  # else a loop of the tests would end early
            raise _raised(raised, arguments, name)
        return answer

    def _exchanged(self, path: Any, given: Any) -> tuple[str, Any]:
        writer, returns = Writer(), self._use.returns
        try:
            with deeply():
                cell = writer.cell(given)
            kind, nodes, cell = self._channel.ask([path, writer.nodes, cell, returns])
        except (NotPlainData, RecursionError) as reason:
            raise Broken(f"the tests give it what is no plain data ({reason})") from None
        if kind not in (RETURNED, RAISED):
            raise Broken(f"its answer cannot be taken: {cell}")
        try:
            values = read_values(nodes, writer.values if returns else ())
            answer = value_of(cell, values)
            return kind, _checked_exception(*answer) if kind == RAISED else answer
        except Exception as reason:  # noqa: BLE001 - an answer may be forged in any way
            raise Broken(f"its answer cannot be read: {reason}") from None


def _checked_exception(kinds: list[str], arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the nearest exception of the standard library, its arguments, and the actual type's name.

    Raises:
        Broken: When it is no exception that programs may raise, such as SystemExit.
    """
    for kind in kinds:
        home, _, name = kind.rpartition(".")
        module = (
            sys.modules.get(home) if home.partition(".")[0] in sys.stdlib_module_names else None
        )
        exception = vars(module).get(name) if module else None
        if isinstance(exception, type) and issubclass(exception, Exception):
            return exception, tuple(arguments), kinds[0].rpartition(".")[2][:100]
        if exception in (BaseException, SystemExit, KeyboardInterrupt, GeneratorExit):
            break
    raise Broken(f"it ends by {kinds[0][:100]}")


def _raised(kind: type[Exception], arguments: tuple[Any, ...], name: str) -> Exception:
    try:
        reason = (
            kind(*arguments) if kind.__module__ == "builtins" else kind.__new__(kind, *arguments)
        )
    except TypeError:  # it takes other arguments
        reason = kind.__new__(kind, *arguments)
    reason.__dict__["of_the_program"] = name
    return reason


def _unusable(why: str) -> ProgramVerdict:
    return ProgramVerdict(None, f"the tests cannot be run: {why}")


def _own_names(tests: Tests, use: Use) -> dict[str, Any]:
    """Return the names that no program can define: those of modules and of the code given to it."""
    names: dict[str, Any] = {"__name__": "tests"}
    if parsed(tests.given).body:  # and not a mere signature
        exec(compile(tests.given, "<given>", "exec"), names)
    names.pop(tests.entry_point, None)
    for name, (home, member) in {**use.imports, **{f"<{m}>": [m, ""] for m in use.modules}}.items():
        module = importlib.import_module(home)
        names.setdefault(name, getattr(module, member) if member else module)
    return names
