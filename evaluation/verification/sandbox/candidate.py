"""The candidate's process in the guarded run: runs the program, then answers the tester's questions.

The program can change everything in this process. So the tester trusts nothing that it sends, and
uses it only as the program's answers.
"""

import ast
import contextlib
import importlib
import json
import os
import re
import sys
from collections.abc import Iterator
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from evaluation.verification.sandbox.peer import Broken, Peer
from evaluation.verification.sandbox.plain_run import load, new_module, set_up
from evaluation.verification.sandbox.proxy import OPERATIONS
from evaluation.verification.sandbox.reasons import PROGRAM


class Callback:
    """Stands for a function of the tests that is passed to the program.

    Args:
        peer: The end of the pipes through which the tester is asked to call it.
        name: The function's name in the tests.
    """

    def __init__(self, peer: Peer, name: str) -> None:
        self._peer, self.__name__ = peer, name

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self._peer.ask(("call", self, arguments, named))


def to_bytes(source: bytes, setup: str) -> bytes:
    """Return a program after the setup statements that it uses: others may reveal expected values.

    Args:
        source: The program, as UTF-8.
        setup: The tests' setup, as Python.

    Returns:
        The statements as JSON on one line, then the program, for `serve`.
    """
    return (
        json.dumps(list(_used(source.decode("utf-8", "replace"), setup))).encode() + b"\n" + source
    )


def _used(program: str, setup: str) -> Iterator[str]:
    """Yield the setup's imports, and the statements that the program uses, directly or indirectly."""
    try:
        nodes = ast.parse(setup).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return  # the tester reports it
    words = set(re.findall(r"\w+", program))
    used: set[ast.stmt] = set()
    while more := [node for node in nodes if node not in used and _is_used(node, words)]:
        used.update(more)
        words |= {n.id for node in more for n in ast.walk(node) if isinstance(n, ast.Name)}
    yield from (ast.unparse(node) for node in nodes if node in used)


def _is_used(node: ast.stmt, words: set[str]) -> bool:
    if isinstance(node, ast.Import | ast.ImportFrom):
        return True
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return node.name in words
    return any(isinstance(n, ast.Name) and n.id in words for n in getattr(node, "targets", ()))


def serve(data: bytes, read: int, write: int) -> None:
    """Run the program and answer the tester's questions; exit when the tester has ended.

    Args:
        data: Result of `to_bytes`.
        read: Descriptor of the tester's questions.
        write: Descriptor of the answers.
    """
    before, _, source = data.partition(b"\n")
    failure: BaseException | None = None
    names: dict[str, Any] = {}
    try:
        text = source.decode("utf-8", "surrogatepass")
        names = new_module(text)
        for line in json.loads(before):
            with contextlib.suppress(Exception):
                set_up(line, names)
        load(text, names)
    except BaseException as reason:  # noqa: BLE001 - whatever a program raises
        failure = reason

    def defined(name: str) -> tuple[Any, ...]:
        # the program's definition of a name that the tests use
        if failure is not None:
            raise failure
        return _described(name, names[name]) if name in names else ("absent",)

    def answer(question: Any) -> Any:
        what, target, *rest = question
        return defined(target) if what == "defined" else OPERATIONS[what](target, *rest)

    peer = Peer(read, write, answer, Callback, draws=False)
    try:
        peer.serve_forever()
    except Broken:
        os._exit(0)


def _described(name: str, value: Any) -> tuple[Any, ...]:
    """Return a value; for a module or a member of one only its name: the tester uses its own copy."""
    if isinstance(value, ModuleType):
        return ("module", value.__name__)
    if isinstance(value, FunctionType | BuiltinFunctionType | type):
        home = value.__module__
        if (
            home not in (PROGRAM, "__main__")
            and getattr(sys.modules.get(home or ""), name, None) is value
        ):
            return ("imported", home)
    return ("own", value)


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
