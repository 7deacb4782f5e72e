"""Answers that are JSON or Python."""

import ast
import json
import textwrap
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from jsonschema import Draft202012Validator

_PYTHON_TAGS = frozenset({"", "python", "py", "python3"})
_FENCE = "```"


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def strict_json(text: str, matches: Mapping[str, Any]) -> bool:
    """Whether the whole text is one JSON value of the schema.

    NaN and Infinity are no JSON. A text nested too deeply to be read is not valid either.
    """
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
        return bool(Draft202012Validator(matches).is_valid(value))
    except (ValueError, RecursionError):
        return False


def python_code(text: str) -> list[str]:
    """The fenced Python of an answer, one string a fence; the whole answer if it has no fence.

    Fences tagged as another language are left out; one that is never closed runs to the end.
    """
    blocks: list[list[str]] = []
    inside = fenced = False
    wanted = False
    for line in text.splitlines():
        if line.strip().startswith(_FENCE):
            tag = line.strip().strip("`").strip().casefold()
            inside, fenced = not inside, True
            wanted = inside and tag in _PYTHON_TAGS
            if wanted:
                blocks.append([])
        elif wanted:
            blocks[-1].append(line)
    if not fenced:
        return [text.strip()]
    return [textwrap.dedent("\n".join(block)) for block in blocks]


def parse_python(text: str) -> list[ast.Module] | None:
    """The syntax trees of an answer's code; None where a part of it is not Python.

    Code too deeply nested for Python's own parser (MemoryError or RecursionError, both of bounded
    depth) is not Python that runs.
    """
    trees = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as an invalid escape, which is still Python
        for code in python_code(text):
            try:
                trees.append(ast.parse(code))
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                return None
    return trees


_DOING = (ast.Call, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _does_something(tree: ast.Module) -> bool:
    """Whether there is a statement, or an expression that a word of English is not."""
    return any(
        (isinstance(node, ast.stmt) and not isinstance(node, ast.Expr)) or isinstance(node, _DOING)
        for node in ast.walk(tree)
    )


def python_parses(text: str) -> bool:
    trees = parse_python(text)
    return trees is not None and any(_does_something(tree) for tree in trees)


def only_code(text: str) -> bool:
    """Whether an answer is Python and nothing else, in one fence or in none."""
    lines = [line.strip() for line in text.strip().splitlines()]
    fences = [index for index, line in enumerate(lines) if line.startswith(_FENCE)]
    return fences in ([], [0, len(lines) - 1]) and python_parses(text)


def defines(text: str, function: str, arguments: Sequence[str] | None) -> bool:
    """Whether the code has a function or method of that name, with these arguments.

    `self` and `cls` are not counted among the arguments.
    """
    return any(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name == function
        and (arguments is None or _arguments(node) == list(arguments))
        for tree in parse_python(text) or []
        for node in ast.walk(tree)
    )


def _arguments(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    spec = function.args
    names = [argument.arg for argument in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names
