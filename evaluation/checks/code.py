"""Checks of Python answers: of their syntax, or with tests, which only the sandbox runs."""

import ast
import builtins
import io
import tokenize
import warnings
from contextlib import suppress
from functools import lru_cache
from typing import Annotated

from pydantic import AfterValidator, Field

from evaluation.checks.declared import Phrase, check
from evaluation.checks.fences import read_fences, whole_fence

_LONGEST = 50_000
"""Longest code that is parsed, in characters: Python's compiler recurses in C."""
_FAILURES = (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError)


def _asserting(source: str) -> str:
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except _FAILURES:
        raise ValueError(f"`{source}` is not Python") from None
    if not any(isinstance(node, ast.Assert) for node in nodes):
        raise ValueError(f"`{source}` has no assert statement, so that any code would pass")
    names = [node for node in nodes if isinstance(node, ast.Name)]
    assigned = {name.id for name in names if isinstance(name.ctx, ast.Store)}
    if not {name.id for name in names} - assigned - set(dir(builtins)):
        raise ValueError(f"`{source}` uses nothing that the code defines, so no code would pass")
    return source


def _has_tokens(part: str) -> str:
    if not _tokens(part):
        raise ValueError(f"{part!r} is no name, number or sign of Python")
    return part


Part = Annotated[Phrase, AfterValidator(_has_tokens)]


def _python_code(text: str) -> list[str]:
    """Return the code of each Python fence of an answer; the whole answer if it has no fence."""
    if fences := read_fences(text):
        return [fence.content for fence in fences if not fence.tag or fence.tag.startswith("py")]
    return [text.strip().strip("`")]


@lru_cache(maxsize=16)
def _parse(text: str) -> tuple[ast.Module, ...] | None:
    """Return the syntax trees of an answer's code; None if a part of it does not compile."""
    trees = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as an invalid escape, which is still valid Python
        for code in _python_code(text):
            if len(code) > _LONGEST:
                return None
            try:
                trees.append(ast.parse(code))
                compile(code, "<answer>", "exec", dont_inherit=True)  # finds a `return` outside
            except _FAILURES:
                return None
    return tuple(trees)


def _statements(text: str) -> list[ast.stmt]:
    return [statement for tree in _parse(text) or () for statement in tree.body]


_DOING = (ast.Call, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _does_something(part: ast.stmt) -> bool:
    """Return whether it is a statement, or an expression that is not a mere English word."""
    is_idle = isinstance(part, ast.Expr | ast.Pass)
    return not is_idle or any(isinstance(node, _DOING) for node in ast.walk(part))


@check("code")
def python_parses(text: str) -> bool:
    """the fenced code, or else the whole answer, is Python."""
    return any(map(_does_something, _statements(text)))


@check("format")
def only_code(text: str) -> bool:
    """Python alone, in one fence or none, and no prose around it."""
    return (not read_fences(text) or whole_fence(text) is not None) and python_parses(text)


_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_DEFINITIONS = _FUNCTIONS | ast.Import | ast.ImportFrom | ast.Assign | ast.AnnAssign


@check("format")
def definitions_only(text: str) -> bool:
    """functions, classes, imports and constants, and no use of them."""
    body = _statements(text)
    others = [part for part in body if not isinstance(part, _DEFINITIONS)]
    docstrings = [part for part in others if isinstance(getattr(part, "value", None), ast.Constant)]
    return len(docstrings) == len(others) < len(body)


@check("instruction")
def code_lacks(
    text: str,
    texts: Annotated[tuple[Part, ...], Field(min_length=1), "Parts such as `max(` or `+`."],
) -> bool:
    """the code is Python, and has none of these outside of strings and comments."""
    written = "".join(f" {token} " for code in _python_code(text) for token in _tokens(code))
    forbidden = ("".join(f" {token} " for token in _tokens(term)) for term in texts)
    return python_parses(text) and not any(term in written for term in forbidden)


def _tokens(code: str) -> list[str]:
    """Return the names, operators and numbers of Python code; what cannot be read ends them."""
    tokens = []
    with suppress(tokenize.TokenError, SyntaxError):
        for token in tokenize.generate_tokens(io.StringIO(code).readline):
            if token.type in (tokenize.NAME, tokenize.OP, tokenize.NUMBER):
                tokens.append(token.string)
    return tokens


@check("instruction")
def passes_tests(
    text: str,
    tests: Annotated[str, AfterValidator(_asserting), "Asserts on what it defines."],
) -> str | bool:
    """the code passes these tests, run in the sandbox."""
    return "\n\n".join(_python_code(text)) if _parse(text) else False
