"""The program's process in the guarded run: runs the program, then calls its functions on request.

The program can change everything in this process. So the tester trusts nothing that it sends, and takes
it only as the program's values.
"""

import ast
import contextlib
import json
import os
import re
from collections.abc import Iterator
from typing import Any

from evaluation.verification.sandbox.channel import Broken, Channel, deeply
from evaluation.verification.sandbox.plain_data import NotPlainData, Writer, read_values, value_of
from evaluation.verification.sandbox.plain_run import load, new_module, set_up
from evaluation.verification.sandbox.reading import defined, parsed

RETURNED, RAISED, UNSENT = "returned", "raised", "unsent"
"""Kinds of answers: a value, an exception, and why a value cannot be sent."""
_PLAIN = (int, float, str, bytes, bool)
_MOST_TEXT = 2000


def to_bytes(source: bytes, setup: str) -> bytes:
    """Return a program after the setup statements that it uses: others may reveal expected values.

    These are JSON on one line, for `serve`.
    """
    return (
        json.dumps(list(_used(source.decode("utf-8", "replace"), setup))).encode() + b"\n" + source
    )


def _used(program: str, setup: str) -> Iterator[str]:
    """Yield the setup's imports, and the statements that the program uses, directly or indirectly."""
    nodes = parsed(setup).body  # if it is not valid, the tester reports it
    words = set(re.findall(r"\w+", program))
    used: list[ast.stmt] = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    while more := [node for node in nodes if node not in used and words & set(defined([node]))]:
        used += more
        words |= {n.id for node in more for n in ast.walk(node) if isinstance(n, ast.Name)}
    yield from (ast.unparse(node) for node in nodes if node in used)


def serve(data: bytes, read: int, write: int) -> None:
    """Run the program and answer the tester's questions; exit when the tester has ended."""
    before, _, source = data.partition(b"\n")
    channel, exit_now = Channel(read, write), os._exit
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
    try:
        while True:
            number, *question = channel.receive()
            with deeply():
                answer = _answer(names, failure, *question)
            channel.send([number, *answer])
    except Broken:
        exit_now(0)


def _answer(
    names: dict[str, Any],
    failure: BaseException | None,
    path: list[str],
    nodes: list[Any],
    cell: Any,
    returns: bool,
) -> list[Any]:
    """Call a function; return the kind of the answer, its nodes and its cell.

    Args:
        path: Name of the function; of a method after that of its class.
        cell: Cell of the positional and the named arguments.
        returns: Whether the arguments' present contents are sent, too.
    """
    values = read_values(nodes)
    writer = Writer(values if returns else ())
    try:
        kind, value = RETURNED, _called(names, failure, path, *value_of(cell, values))
    except BaseException as reason:  # noqa: BLE001 - a program may raise anything
        kind, value = RAISED, _described(reason)
    try:
        answer = writer.cell(value)
        writer.write_again()
    except Exception as reason:  # noqa: BLE001 - a program's iterator may raise anything
        if isinstance(reason, NotPlainData | RecursionError | MemoryError):
            return [UNSENT, [], (str(reason) or type(reason).__name__)[:_MOST_TEXT]]
        writer = Writer(values if returns else ())
        kind, answer = RAISED, writer.cell(_described(reason))
    return [kind, writer.nodes, answer]


def _called(
    names: dict[str, Any],
    failure: BaseException | None,
    path: list[str],
    arguments: tuple[Any, ...],
    named: dict[str, Any],
) -> Any:
    if failure is not None:
        raise failure
    if not path:
        return [name for name, value in names.items() if callable(value)]
    if len(path) == 1:
        return names[path[0]](*arguments, **named)
    instance = f"instance of {path[0]}"
    if instance not in names:
        names[instance] = names[path[0]]()
    return getattr(names[instance], path[1])(*arguments, **named)


def _described(reason: BaseException) -> tuple[list[str], Any]:
    """Return an exception's types, the most special first, and its arguments."""
    kinds = [f"{kind.__module__}.{kind.__name__}" for kind in type(reason).__mro__]
    is_plain = all(type(part) in _PLAIN for part in reason.args)
    return kinds, reason.args if is_plain else (str(reason),)
