"""Answers that are Python."""

import ast
import re
import textwrap
import warnings
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from evaluation.grading.checks.markdown import Fence, read_fences

_PYTHON = re.compile(r"(?:python|py|ipython)?(?:[23](?:\.\d+)*)?")
_LONGEST = 50_000
"""Characters of code at most: what is longer is not read, since Python's compiler recurses in C."""


def _is_python(fence: Fence) -> bool:
    return _PYTHON.fullmatch(fence.tag) is not None


def python_code(text: str) -> list[str]:
    """The fenced Python of an answer, one string a fence; the whole answer if it has no fence.

    Fences tagged as another language are left out; one that is never closed runs to the end.
    """
    if fences := read_fences(text):
        return [textwrap.dedent(fence.content) for fence in fences if _is_python(fence)]
    whole = text.strip()
    if len(whole) > 2 and whole[0] == "`" == whole[-1] and "`" not in whole[1:-1]:
        return [whole[1:-1]]
    return [whole]


@lru_cache(maxsize=16)
def parse_python(text: str) -> tuple[ast.Module, ...] | None:
    """The syntax trees of an answer's code; None where a part of it is not Python.

    Code is compiled, so that a `return` outside of a function is found too, but never run. What is
    too long or too deeply nested for Python's own compiler is not Python that runs.
    """
    trees = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as an invalid escape, which is still Python
        for code in python_code(text):
            if len(code) > _LONGEST:
                return None
            try:
                trees.append(ast.parse(code))
                compile(code, "<answer>", "exec", dont_inherit=True)
            except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
                return None
    return tuple(trees)


_DOING = (ast.Call, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_IDLE = (ast.Expr, ast.Pass)


def _does_something(tree: ast.AST) -> bool:
    """Whether there is a statement, or an expression that a word of English is not."""
    return any(
        (isinstance(node, ast.stmt) and not isinstance(node, _IDLE)) or isinstance(node, _DOING)
        for node in ast.walk(tree)
    )


def python_parses(text: str) -> bool:
    trees = parse_python(text)
    return trees is not None and any(_does_something(tree) for tree in trees)


def only_code(text: str) -> bool:
    """Whether an answer is Python and nothing else, in one closed fence or in none."""
    fences = read_fences(text)
    lines = text.strip().count("\n") + 1
    skipped = text[: len(text) - len(text.lstrip())].count("\n")
    whole = all(
        fence.closed and (fence.lines[0] - skipped, fence.lines[1] - skipped) == (0, lines)
        for fence in fences
    )
    return len(fences) <= 1 and whole and python_parses(text)


def _functions(text: str) -> Iterable[ast.FunctionDef | ast.AsyncFunctionDef]:
    for tree in parse_python(text) or ():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node


def defines(text: str, function: str, arguments: Sequence[str] | None) -> bool:
    """Whether the code has a function or method of that name, with these arguments and a body.

    `self` and `cls` are not counted among the arguments. `pass`, `...`, a docstring, `return None` and
    `raise NotImplementedError` are no body.
    """
    return any(
        node.name == function
        and (arguments is None or _arguments(node) == list(arguments))
        and any(_does_something(part) and not _is_stub(part) for part in node.body)
        for node in _functions(text)
    )


def _is_stub(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Return):
        value = statement.value
        return value is None or (isinstance(value, ast.Constant) and value.value in (None, ...))
    if isinstance(statement, ast.Raise):
        raised = statement.exc.func if isinstance(statement.exc, ast.Call) else statement.exc
        return isinstance(raised, ast.Name) and raised.id == "NotImplementedError"
    return False


def _arguments(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    spec = function.args
    names = [argument.arg for argument in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)]
    names += [f"*{argument.arg}" for argument in (spec.vararg, spec.kwarg) if argument]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


def code_is(text: str, any_of: Sequence[str]) -> bool:
    """Whether one of the patterns is all of the code (see `_matches`)."""
    trees = parse_python(text) or ()
    body = [statement for tree in trees for statement in tree.body]
    if len(body) != 1:
        return False
    found = body[0].value if isinstance(body[0], ast.Expr) else body[0]
    return any(_matches(_read_pattern(pattern), found) for pattern in any_of)


def code_has(text: str, any_of: Sequence[str]) -> bool:
    """Whether one of the patterns occurs in the code (see `_matches`)."""
    return any(_occurs(text, pattern) for pattern in any_of)


def code_lacks(text: str, patterns: Sequence[str]) -> bool:
    """Whether the code is Python and none of the patterns occurs in it."""
    return python_parses(text) and not any(_occurs(text, pattern) for pattern in patterns)


def _occurs(text: str, pattern: str) -> bool:
    wanted = _read_pattern(pattern)
    return any(
        _matches(wanted, node) for tree in parse_python(text) or () for node in ast.walk(tree)
    )


@lru_cache(maxsize=256)
def _read_pattern(pattern: str) -> ast.AST:
    statement = ast.parse(pattern).body[0]
    return statement.value if isinstance(statement, ast.Expr) else statement


_INSIGNIFICANT = frozenset(
    {"ctx", "type_comment", "kind", "decorator_list", "returns", "annotation", "asname"}
)


def _matches(wanted: Any, found: Any) -> bool:
    """Whether code has the form of a pattern: `_` stands for one thing, `...` for any number."""
    if isinstance(wanted, ast.Name) and wanted.id == "_":
        return isinstance(found, ast.AST)
    if isinstance(wanted, ast.AST):
        return type(wanted) is type(found) and all(
            _matches(value, getattr(found, name, None))
            for name, value in ast.iter_fields(wanted)
            if name not in _INSIGNIFICANT and not (name == "keywords" and _any_arguments(wanted))
        )
    if isinstance(wanted, list):
        return isinstance(found, list) and _match_lists(wanted, found)
    return wanted == "_" or (type(wanted) is type(found) and bool(wanted == found))


def _any_arguments(call: ast.AST) -> bool:
    return isinstance(call, ast.Call) and any(_is_rest(argument) for argument in call.args)


def _is_rest(node: Any) -> bool:
    value = node.value if isinstance(node, ast.Expr) else node
    return isinstance(value, ast.Constant) and value.value is Ellipsis


def _match_lists(wanted: list[Any], found: list[Any]) -> bool:
    """As `_matches`, part by part; one `...` among the wanted parts takes what the others leave."""
    rest = next((index for index, part in enumerate(wanted) if _is_rest(part)), None)
    if rest is None:
        return len(wanted) == len(found) and all(map(_matches, wanted, found))
    last = len(wanted) - rest - 1
    return len(found) >= rest + last and all(
        map(_matches, wanted[:rest] + wanted[rest + 1 :], found[:rest] + found[len(found) - last :])
    )
