"""Checks of Python answers: of their syntax, or with tests in the sandbox.

A model's code may do anything, so it runs only in the sandbox, and for at most seconds.
"""

import ast
import warnings
from collections.abc import Container, Iterable, Sequence
from functools import lru_cache, reduce
from typing import Any

from evaluation.reading.code_blocks import code_text, read_blocks
from evaluation.reading.programs import joined
from evaluation.reading.text import without_outer
from evaluation.verification.fences import read_fences, whole_fence
from evaluation.verification.sandbox.model import Limits, ProgramVerdict, Tests
from evaluation.verification.sandbox.run import run_program

_LONGEST = 50_000
"""Longest code that is parsed, in characters: Python's compiler recurses in C."""


def _python_code(text: str) -> list[str]:
    """Return the code of each Python block of an answer; the whole answer if it has no block."""
    text = code_text(text)
    blocks, _ = read_blocks(text)
    if blocks:
        return [block.content for block in blocks if block.is_python]
    return [without_outer(text.strip(), "`")]


@lru_cache(maxsize=16)
def _parse_python(text: str) -> tuple[ast.Module, ...] | None:
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
            except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
                return None
    return tuple(trees)


_DOING = (ast.Call, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_IDLE = (ast.Expr, ast.Pass)


def _does_something(tree: ast.AST) -> bool:
    """Return whether there is a statement, or an expression that is not a mere English word."""
    return any(
        (isinstance(node, ast.stmt) and not isinstance(node, _IDLE)) or isinstance(node, _DOING)
        for node in ast.walk(tree)
    )


def _python_parses(text: str) -> bool:
    """Return whether the code of an answer is Python that does something."""
    trees = _parse_python(text)
    return trees is not None and any(_does_something(tree) for tree in trees)


def _only_code(text: str) -> bool:
    """Return whether an answer is only Python, in one closed fence or without a fence."""
    fenced = bool(read_fences(text))
    return (not fenced or whole_fence(text) is not None) and _python_parses(text)


def _code_lines(text: str) -> int:
    """Count the non-blank lines of an answer's code."""
    return sum(bool(line.strip()) for code in _python_code(text) for line in code.split("\n"))


def _definitions_only(text: str) -> bool:
    """Return whether the code only defines things: no example call, print or main block."""
    body = [statement for tree in _parse_python(text) or () for statement in tree.body]
    names = {getattr(statement, "name", None) for statement in body}
    return any(map(_does_something, body)) and all(_is_definition(part, names) for part in body)


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)


def _is_definition(statement: ast.stmt, names: Container[str | None]) -> bool:
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        calls = [node.func for node in ast.walk(statement) if isinstance(node, ast.Call)]
        return not any(isinstance(node, ast.Name) and node.id in names for node in calls)
    return isinstance(statement, _DEFINITIONS)


Parameters = tuple[str, ast.arguments, Sequence[ast.AST]]
"""A function's name, arguments and body."""


def _functions(text: str) -> Iterable[Parameters]:
    for tree in _parse_python(text) or ():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node.name, node.args, node.body
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        yield target.id, node.value.args, [ast.Return(node.value.body)]


def _defines(answer: str, /, function: str, arguments: Sequence[str] | None) -> bool:
    """Return whether it defines this function, not as a stub; `self` and `cls` are not compared."""
    return any(
        name == function
        and (arguments is None or _arguments(spec) == list(arguments))
        and any(_does_something(part) and not _is_stub(part) for part in body)
        for name, spec, body in _functions(answer)
    )


def _is_stub(statement: ast.AST) -> bool:
    """Return whether it is `return None` or `raise NotImplementedError`."""
    if isinstance(statement, ast.Return):
        value = statement.value
        return value is None or (isinstance(value, ast.Constant) and value.value in (None, ...))
    if isinstance(statement, ast.Raise):
        raised = statement.exc.func if isinstance(statement.exc, ast.Call) else statement.exc
        return isinstance(raised, ast.Name) and raised.id == "NotImplementedError"
    return False


def _arguments(spec: ast.arguments) -> list[str]:
    names = [argument.arg for argument in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)]
    names += [f"*{argument.arg}" for argument in (spec.vararg, spec.kwarg) if argument]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


def _code_is(answer: str, /, any_of: Sequence[str]) -> bool:
    """Return whether one of the patterns matches the whole code (see `_matches`)."""
    trees = _parse_python(answer) or ()
    body = [statement for tree in trees for statement in tree.body]
    if len(body) != 1:
        return False
    found = body[0].value if isinstance(body[0], ast.Expr) else body[0]
    return any(_matches(_read_pattern(pattern), found) for pattern in any_of)


def _code_has(answer: str, /, any_of: Sequence[str]) -> bool:
    """Return whether one of the patterns occurs in the code (see `_matches`)."""
    return any(_occurs(answer, pattern) for pattern in any_of)


def _code_lacks(answer: str, /, patterns: Sequence[str]) -> bool:
    """Return whether the code is Python and none of the patterns occurs in it."""
    return _python_parses(answer) and not any(_occurs(answer, pattern) for pattern in patterns)


def _occurs(text: str, pattern: str) -> bool:
    """Return whether a pattern occurs; a mere name does not if the code assigns to it."""
    wanted = _read_pattern(pattern)
    nodes = [node for tree in _parse_python(text) or () for node in ast.walk(tree)]
    if isinstance(wanted, ast.Name) and any(_gives_meaning(node, wanted.id) for node in nodes):
        return False
    return any(_matches(wanted, node) for node in nodes)


def _gives_meaning(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)


@lru_cache(maxsize=256)
def _read_pattern(pattern: str) -> ast.AST:
    statement = ast.parse(pattern).body[0]
    return statement.value if isinstance(statement, ast.Expr) else statement


_INSIGNIFICANT = frozenset(
    {"ctx", "type_comment", "kind", "decorator_list", "returns", "annotation", "asname"}
)


def _matches(wanted: Any, node: Any) -> bool:
    """Return whether code matches a pattern: `_` matches one node, `...` any number of nodes."""
    if isinstance(wanted, ast.Name) and wanted.id == "_":
        return isinstance(node, ast.AST)
    if isinstance(wanted, ast.AST):
        return type(wanted) is type(node) and all(
            _matches(value, getattr(node, name, None))
            for name, value in ast.iter_fields(wanted)
            if name not in _INSIGNIFICANT and not (name == "keywords" and _any_arguments(wanted))
        )
    if isinstance(wanted, list):
        return isinstance(node, list) and _match_lists(wanted, node)
    return wanted == "_" or (type(wanted) is type(node) and bool(wanted == node))


def _any_arguments(call: ast.AST) -> bool:
    return isinstance(call, ast.Call) and any(_is_rest(argument) for argument in call.args)


def _is_rest(node: Any) -> bool:
    value = node.value if isinstance(node, ast.Expr) else node
    return isinstance(value, ast.Constant) and value.value is Ellipsis


def _match_lists(wanted: list[Any], nodes: list[Any]) -> bool:
    """Match lists element by element; one `...` matches all elements that the others leave."""
    rest = next((index for index, part in enumerate(wanted) if _is_rest(part)), None)
    if rest is None:
        return len(wanted) == len(nodes) and all(map(_matches, wanted, nodes))
    last = len(wanted) - rest - 1
    return len(nodes) >= rest + last and all(
        map(_matches, wanted[:rest] + wanted[rest + 1 :], nodes[:rest] + nodes[len(nodes) - last :])
    )


LIMITS = Limits(seconds=5.0, memory_mb=512)
"""Limits for one answer with all its tests."""


def _passes_tests(answer: str, /, tests: str) -> ProgramVerdict:
    """Run the tests with an answer's code, which is that of all its fences joined."""
    if _parse_python(answer) is None:
        return ProgramVerdict(False)
    program = reduce(joined, _python_code(answer), "")
    return run_program(program, Tests(source=tests), LIMITS)
