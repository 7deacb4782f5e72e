"""The judge's process: runs the tests against a program that it can only ask.

It is caged too, as tests are foreign code; but no line of the program ever runs in it. Its verdict
is written only after the last test, and only this process has the pipe that it is written to.
"""

import ast
import builtins
import importlib
from collections.abc import Callable, Iterator
from typing import Any

from evaluation.verification.cage.model import Outcome, Tests
from evaluation.verification.cage.peer import Broken, Peer
from evaluation.verification.cage.reasons import TESTS, Missing, Unusable, told
from evaluation.verification.cage.stand_in import Log, StandIn

_SHARED = {
    *"math cmath copy itertools functools collections operator re string statistics".split(),
    *"decimal fractions typing heapq bisect random numpy".split(),
}
"""Modules that tests may use because the program imports them. The judge imports them itself."""


def judge(tests: Tests, read: int, write: int, begin: Callable[[int], None]) -> Outcome:
    """Calls `begin` with the number of each test before it is run."""
    log = Log()

    def stand_in(peer: Peer, name: str) -> StandIn:
        return StandIn(peer, name, log)

    peer = Peer(read, write, _called_back, stand_in, draws=True)
    current, parsed = "", {"tests": ast.Module([], [])}
    try:
        parsed = _parsed(tests)
        theirs = _defined(peer, *_asked_for(tests, parsed))
        names = _world(tests, parsed["setup"], theirs)
        for number, (text, test) in enumerate(_tests(tests, parsed, names, theirs)):
            current = text
            begin(number)
            test()
        peer.check_silence()
        if peer.broken:  # and a test caught it
            raise Broken(peer.broken)
        if not theirs:
            raise Missing("any name that the tests use")
        if not log.questions and all(isinstance(value, StandIn) for value in theirs.values()):
            raise Unusable("they ask nothing of the program")
    except BaseException as reason:  # noqa: BLE001 - whatever tests raise
        return told(reason, current, parsed["tests"], log, peer.broken)
    return Outcome(True)


def _parsed(tests: Tests) -> dict[str, ast.Module]:
    texts = {"setup": tests.setup, "tests": "\n".join(tests.asserts) or tests.source}
    try:
        return {name: ast.parse(text, f"<{name}>") for name, text in texts.items()}
    except (SyntaxError, ValueError, RecursionError, MemoryError) as reason:
        raise Unusable(f"{type(reason).__name__}: {reason}") from None


def _called_back(question: Any) -> Any:
    """All that a program may ask of the judge: to call a function that a test gave it."""
    what, function, arguments, named = question
    if what != "call" or not callable(function) or isinstance(function, StandIn):
        raise TypeError("only functions that the tests passed can be called")
    return function(*arguments, **named)


def _asked_for(tests: Tests, parsed: dict[str, ast.Module]) -> tuple[list[str], str]:
    """Names that may be the program's, and the imports that the tests rely on."""
    used = _used(parsed["setup"]) | _used(parsed["tests"])
    if tests.entry_point:
        used.add(tests.entry_point)
    imports = [
        ast.unparse(node)
        for node in parsed["setup"].body
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    return sorted(used), "\n".join(imports)


def _world(tests: Tests, setup: ast.Module, theirs: dict[str, Any]) -> dict[str, Any]:
    """The names that the tests see: those of the program, under those of the tests' own code."""
    names = {**_without_builtins(theirs, tests), "__name__": "tests"}
    names |= _given(tests.given)
    if tests.entry_point:
        if tests.entry_point not in theirs:
            raise Missing(tests.entry_point)
        names[tests.entry_point] = theirs[tests.entry_point]
    _set_up(setup, names, theirs)
    return names


def _set_up(tree: ast.Module, names: dict[str, Any], theirs: dict[str, Any]) -> None:
    try:
        exec(compile(tree, "<setup>", "exec"), names)
    except Exception as reason:
        if _used(tree) & theirs.keys():
            raise
        raise Unusable(f"{type(reason).__name__}: {reason}") from None


def _used(tree: ast.Module) -> set[str]:
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return {name for name in names if not name.startswith("__")}


def _defined(peer: Peer, used: list[str], imports: str) -> dict[str, Any]:
    """Whatever goes wrong here is the program's doing."""
    try:
        defined = peer.ask(("names", used, imports))
        return {name: _resolved(name, *defined[name]) for name in used if name in defined}
    except Exception as reason:
        reason.__dict__.setdefault("of_the_program", type(reason).__name__)
        raise


def _resolved(name: str, kind: str, *rest: Any) -> Any:
    """What the program imported is taken from the judge's own modules, under its own name."""
    if kind == "own":
        return rest[0]
    if rest[0] not in _SHARED or (kind == "imported" and rest[1] != name):
        raise ImportError(f"the tests use `{name}`, which the program imports from elsewhere")
    module = importlib.import_module(rest[0])
    return module if kind == "module" else getattr(module, name)


def _without_builtins(theirs: dict[str, Any], tests: Tests) -> dict[str, Any]:
    """A program's `len` or `set` is the tests' only where they ask for nothing else of it.

    Else a program could replace what its answers are compared with.
    """
    own = {name: value for name, value in theirs.items() if not hasattr(builtins, name)}
    if tests.entry_point or any(isinstance(value, StandIn) for value in own.values()):
        return own
    return theirs


def _given(source: str) -> dict[str, Any]:
    """What the given code defines; none if it cannot stand alone, as a signature without a body."""
    names: dict[str, Any] = {"__name__": "tests"}
    try:
        code = compile(source, "<given>", "exec")
    except (SyntaxError, ValueError):
        return {}
    try:
        exec(code, names)
    except Exception as reason:  # noqa: BLE001 - whatever it raises
        raise Unusable(f"{type(reason).__name__}: {reason}") from None
    return names


def _tests(
    tests: Tests, parsed: dict[str, ast.Module], names: dict[str, Any], theirs: dict[str, Any]
) -> Iterator[tuple[str, Callable[[], None]]]:
    """Each test as a text for the reason and a function that runs it."""
    if tests.asserts:
        for text in tests.asserts:
            code = compile(text, TESTS, "exec")
            yield text, lambda code=code: exec(code, names)  # type: ignore[misc]
        return
    code = compile(parsed["tests"], TESTS, "exec")
    yield "", lambda: exec(code, names)
    defined = {node.name for node in parsed["tests"].body if isinstance(node, ast.FunctionDef)}
    if tests.entry_point and "check" in defined:
        yield "", lambda: names["check"](theirs[tests.entry_point])
