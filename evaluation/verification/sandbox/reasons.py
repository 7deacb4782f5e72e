"""Builds the sentence why a program did not pass: which assert failed, and what the program returned."""

import ast
import builtins
import errno
import reprlib
from collections.abc import Iterator
from types import FrameType, FunctionType, TracebackType
from typing import Any

PROGRAM = "program"
"""Name of the module as which a program runs."""
FILE = f"<{PROGRAM}>"
TESTS = "<tests>"
"""The file name with which tests are compiled."""
_MOST = 240
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 120
_SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxset = _SHORT.maxdict = 8
_REFUSALS = {errno.EPERM, errno.EACCES, errno.EROFS, errno.ENOENT, errno.EAGAIN}
_NOT_GIVEN = "the sandbox does not allow it"


class Unusable(Exception):
    """The tests cannot be run with any program."""


class Missing(Exception):
    """The program does not define a name that the tests use."""


def failure_reason(
    reason: BaseException, test: str, tree: ast.Module, seen: str | None = None
) -> str:
    """Return why tests ended with an exception: a sentence of bounded length that names the test.

    Args:
        test: Text of the failed test; empty to take the statement from the traceback.
        seen: Sentence about what the program returned, if known; None to call it once more.
    """
    of_the_program = is_of_the_program(reason)
    if isinstance(reason, Missing | NameError) and not of_the_program and not _is_builtin(reason):
        return _missing(reason)
    node, frame = _place(reason.__traceback__, tree)
    if seen is None:
        seen = _seen(node, frame) if node and frame and not of_the_program else ""
    if of_the_program:
        what = f"the program raises {named(reason)}{_refused(reason)}"
    elif isinstance(reason, AssertionError):
        what = seen or "it is false"
    else:
        what = f"{named(reason)}; {seen}".removesuffix("; ")
    where = shortened(test or (ast.unparse(node) if node else ""))
    return f"`{where}`: {what}" if where else what


def is_of_the_program(reason: BaseException) -> bool:
    """Return whether an exception was raised inside the program, here or in its own process."""
    if getattr(reason, "of_the_program", ""):
        return True
    if isinstance(reason, SyntaxError) and reason.filename == FILE:
        return True
    return any(frame.f_code.co_filename == FILE for frame, _ in _frames(reason.__traceback__))


def _is_builtin(reason: BaseException) -> bool:
    return isinstance(reason, NameError) and hasattr(builtins, str(reason.name))


def _missing(reason: BaseException) -> str:
    name = reason.name if isinstance(reason, NameError) else str(reason)
    return f"the program does not define {shortened(name or reason)}"


def named(reason: BaseException) -> str:
    """Return an exception's type and text on one line, such as `ValueError: no such array`."""
    kind = str(getattr(reason, "of_the_program", "")) or type(reason).__name__
    text = shortened(reason)
    return f"{kind}: {text}" if text else kind


def _refused(reason: BaseException) -> str:
    is_refusal = isinstance(reason, OSError) and reason.errno in _REFUSALS
    is_thread = isinstance(reason, RuntimeError) and "start new thread" in str(reason)
    return f" ({_NOT_GIVEN})" if is_refusal or is_thread else ""


def _frames(trace: TracebackType | None) -> Iterator[tuple[FrameType, int]]:
    while trace is not None:
        yield trace.tb_frame, trace.tb_lineno
        trace = trace.tb_next


def _place(
    trace: TracebackType | None, tree: ast.Module
) -> tuple[ast.Assert | ast.Expr | None, FrameType | None]:
    """Return the innermost statement of the tests that was running, and its frame."""
    of_tests = [frame for frame in _frames(trace) if frame[0].f_code.co_filename == TESTS]
    if not of_tests:
        return None, None
    frame, line = of_tests[-1]
    place_found = None
    for node in ast.walk(tree):  # outer ones first
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or 0):
            place_found = node
    return (place_found, frame) if isinstance(place_found, ast.Assert | ast.Expr) else (None, None)


def _seen(node: ast.stmt, frame: FrameType) -> str:
    """Call the function of a failed assert once more, as its value was not stored; return a sentence."""
    names = {**frame.f_globals, **frame.f_locals}
    try:
        calls = [node for node in ast.walk(node) if isinstance(node, ast.Call)]
        call, function = next((c, f) for c in calls if _is_of_program(f := _value(c.func, names)))
        inside = ", ".join(short(_value(one, names)) for one in call.args)
        answer = short(_value(call, names))
    except BaseException:  # noqa: BLE001 - a program may raise anything
        return ""
    return gave(str(getattr(function, "__name__", "it")), inside, answer)


def _is_of_program(function: Any) -> bool:
    code = getattr(function, "__code__", None)
    return code is not None and code.co_filename == FILE


def _value(node: ast.expr, names: dict[str, Any]) -> Any:
    return eval(compile(ast.Expression(node), TESTS, "eval"), names)


def gave(name: str, inside: str, answer: str) -> str:
    """Return a sentence about a call, such as `f(3) gave 4`; long arguments are cut."""
    inside = inside if len(inside) <= 200 else inside[:199] + "…"
    return f"{name[:80]}({inside}) gave {answer}"


def short(value: object) -> str:
    """Return any value as text of some 300 characters at most; its `__repr__` may run."""
    if type(value) is int and abs(value).bit_length() > 400:
        return f"an integer of {value.bit_length()} bits"
    if isinstance(value, FunctionType):
        return f"<{value.__name__}>"
    try:
        text = _SHORT.repr(value)
    except BaseException:  # noqa: BLE001 - e.g. integers with too many digits inside
        return f"a {type(value).__name__}"
    return text if len(text) <= 300 else text[:299] + "…"


def shortened(what: object) -> str:
    """Return a text, or that of an exception, on one line of bounded length."""
    try:
        text = str(what)
    except Exception:  # noqa: BLE001 - an exception's `__str__` may be hostile
        text = short(what)
    text = " ".join(text[: 4 * _MOST].split())
    return text if len(text) <= _MOST else text[: _MOST - 1] + "…"
