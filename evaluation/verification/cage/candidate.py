"""The candidate's process: runs the program, then answers what the judge asks of it.

All of this is at the mercy of the program, which may change any of it: what it sends is only ever
taken for its answers.
"""

import importlib
import os
import sys
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from evaluation.verification.cage.peer import Broken, Peer

_PROGRAM = "program"


class Callback:
    """A function of the tests, as an argument of the program's."""

    def __init__(self, peer: Peer, name: str) -> None:
        self._peer, self.__name__ = peer, name

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self._peer.ask(("call", self, arguments, named))


def serve(source: bytes, read: int, write: int) -> None:
    """Ends when the judge has gone."""
    module = ModuleType(_PROGRAM)
    sys.modules[_PROGRAM] = module
    failure: BaseException | None = None
    try:
        text = source.decode("utf-8", "surrogatepass")
        exec(compile(text, f"<{_PROGRAM}>", "exec", dont_inherit=True), module.__dict__)
    except BaseException as reason:  # noqa: BLE001 - whatever a program raises
        failure = reason
    peer = Peer(read, write, _Answers(module, failure), Callback, draws=False)
    try:
        peer.serve_forever()
    except Broken:
        os._exit(0)


class _Answers:
    def __init__(self, module: ModuleType, failure: BaseException | None) -> None:
        self._module, self._failure = module, failure

    def __call__(self, question: Any) -> Any:
        what, target, *rest = question
        if what == "names":
            return self._names(target, *rest)
        return _ANSWERS[what](target, *rest)

    def _names(self, names: list[str], imports: str) -> dict[str, Any]:
        """What the program defines of these names, after the imports that the tests rely on."""
        if self._failure is not None:
            raise self._failure
        defined = vars(self._module)
        exec(imports, defined)
        return {name: _described(defined[name]) for name in names if name in defined}


def _described(value: Any) -> tuple[Any, ...]:
    """Modules and their functions are named, so that the judge takes its own."""
    if isinstance(value, ModuleType):
        return ("module", value.__name__)
    if isinstance(value, FunctionType | BuiltinFunctionType | type):
        home, name = value.__module__, value.__name__
        if home != _PROGRAM and getattr(sys.modules.get(home or ""), name, None) is value:
            return ("imported", home, name)
    return ("own", value)


def _call(target: Any, arguments: Any, named: Any) -> Any:
    return target(*arguments, **named)


_ANSWERS: dict[str, Any] = {
    "call": _call,
    "get": getattr,
    "set": setattr,
    "item": lambda target, key: target[key],
    "iterate": iter,
    "next": next,
    "length": len,
    "truth": bool,
    "text": str,
}


def preload() -> None:
    """Imports what programs often use, once for all of them."""
    for name in _OFTEN_USED.split():
        try:
            importlib.import_module(name)
        except ImportError:  # an interpreter built without it
            continue


_OFTEN_USED = """
    abc array ast bisect bz2 calendar cmath collections contextlib copy ctypes dataclasses datetime
    decimal enum fractions functools hashlib heapq inspect io itertools json keyword lzma math
    numbers operator queue random re reprlib statistics string struct textwrap time timeit
    traceback types typing unicodedata warnings zlib
    numpy numpy.linalg numpy.random
"""
