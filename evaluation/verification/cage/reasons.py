"""Why a program did not pass, in a sentence: which assert, and what the program gave."""

import ast
from types import TracebackType

from evaluation.verification.cage.model import Outcome
from evaluation.verification.cage.stand_in import Log, short

TESTS = "<tests>"
"""The file name that tests are compiled with."""
_MOST = 240


class Unusable(Exception):
    """The tests cannot be run, whatever the program is."""


class Missing(Exception):
    """The program does not define what the tests call."""


def told(reason: BaseException, test: str, tree: ast.Module, log: Log, broken: str) -> Outcome:
    """The outcome of tests that ended with an exception; `broken` if the program cannot go on.

    Only what the program has no part in is the fault of the tests: else it could choose not to be
    judged.
    """
    of_the_program = bool(_of_the_program(reason))
    if isinstance(reason, Unusable) or (isinstance(reason, ImportError) and not of_the_program):
        return Outcome(None, f"the tests cannot be run: {_named(reason)}")
    if isinstance(reason, Missing | NameError) and not (broken or of_the_program):
        return Outcome(False, _missing(reason))
    if broken:
        what = f"the program cannot be judged: {broken}"
    elif of_the_program:
        what = f"the program raises {_named(reason)}"
    elif isinstance(reason, AssertionError):
        what = log.told() or "it is false"
    else:
        what = f"{_named(reason)}; {log.told()}".removesuffix("; ")
    where = _place(reason, test, tree)
    return Outcome(False, f"`{where}`: {what}" if where else what)


def _of_the_program(reason: BaseException) -> str:
    return str(getattr(reason, "of_the_program", ""))


def _missing(reason: BaseException) -> str:
    name = reason.name if isinstance(reason, NameError) else str(reason)
    return f"the program does not define {shortened(name or reason)}"


def _named(reason: BaseException) -> str:
    kind = _of_the_program(reason) or type(reason).__name__
    kind = "" if kind == "Unusable" else kind
    text = shortened(reason)
    return f"{kind}: {text}" if kind and text else kind or text


def _place(reason: BaseException, test: str, tree: ast.Module) -> str:
    """The test, or the innermost statement of the source that was running."""
    if test:
        return shortened(test)
    line = _line(reason.__traceback__)
    found = None
    for node in ast.walk(tree):  # outer ones first
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or 0):
            found = node
    return shortened(ast.unparse(found)) if isinstance(found, ast.Assert | ast.Expr) else ""


def _line(trace: TracebackType | None) -> int:
    line = 0
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == TESTS:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def shortened(what: object) -> str:
    """One line of bounded length."""
    try:
        text = str(what)
    except Exception:  # noqa: BLE001 - an exception's text can be as hostile as anything
        text = short(what)
    text = " ".join(text[: 4 * _MOST].split())
    return text if len(text) <= _MOST else text[: _MOST - 1] + "…"
