"""Answers that are Python: read by their syntax, or run against tests in the sandbox.

A model's code may do anything, so it never runs in this process, and for seconds at most.
"""

import ast
import re
import textwrap
import warnings
from collections.abc import Container, Iterable, Sequence
from functools import lru_cache, reduce
from typing import Any

from evaluation.verification.checks.markdown import Fence, read_fences, whole_fence
from evaluation.verification.programs import joined
from evaluation.verification.sandbox.model import Limits, ProgramVerdict, Tests
from evaluation.verification.sandbox.run import run_program

_PYTHON = re.compile(r"(?:python|py|ipython)?(?:[23](?:\.\d+)*)?")
_LONGEST = 50_000
"""Characters of code at most: what is longer is not read, since Python's compiler recurses in C."""


def _is_python(fence: Fence) -> bool:
    return _PYTHON.fullmatch(fence.tag) is not None


def _python_code(text: str) -> list[str]:
    """The fenced Python of an answer, a string a fence; all of the answer if it has no fence."""
    if fences := read_fences(text):
        return [textwrap.dedent(fence.content) for fence in fences if _is_python(fence)]
    whole = text.strip()
    if len(whole) > 2 and whole[0] == "`" == whole[-1] and "`" not in whole[1:-1]:
        return [whole[1:-1]]
    return [whole]


@lru_cache(maxsize=16)
def _parse_python(text: str) -> tuple[ast.Module, ...] | None:
    """The syntax trees of an answer's code; None where a part of it is not Python that compiles."""
    trees = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as an invalid escape, which is still Python
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
    """Whether there is a statement, or an expression that a word of English is not."""
    return any(
        (isinstance(node, ast.stmt) and not isinstance(node, _IDLE)) or isinstance(node, _DOING)
        for node in ast.walk(tree)
    )


def _python_parses(text: str) -> bool:
    """Whether the code of an answer is Python that does something."""
    trees = _parse_python(text)
    return trees is not None and any(_does_something(tree) for tree in trees)


def _only_code(text: str) -> bool:
    """Whether an answer is Python and nothing else, in one closed fence or in none."""
    fenced = bool(read_fences(text))
    return (not fenced or whole_fence(text) is not None) and _python_parses(text)


def _code_lines(text: str) -> int:
    """Count the lines of an answer's code that are not blank."""
    return sum(bool(line.strip()) for code in _python_code(text) for line in code.split("\n"))


def _definitions_only(text: str) -> bool:
    """Whether the code defines things and runs nothing: no example, print, main block."""
    body = [statement for tree in _parse_python(text) or () for statement in tree.body]
    names = {getattr(statement, "name", None) for statement in body}
    return any(map(_does_something, body)) and all(_is_definition(part, names) for part in body)


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)


def _is_definition(statement: ast.stmt, names: Container[str | None]) -> bool:
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        calls = [node.func for node in ast.walk(statement) if isinstance(node, ast.Call)]
        return not any(isinstance(one, ast.Name) and one.id in names for one in calls)
    return isinstance(statement, _DEFINITIONS)


Parameters = tuple[str, ast.arguments, Sequence[ast.AST]]
"""A function's name, its arguments, and the parts of its body."""


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
    """Whether it has such a function with a body; `self` and `cls` are not among the arguments."""
    return any(
        name == function
        and (arguments is None or _arguments(spec) == list(arguments))
        and any(_does_something(part) and not _is_stub(part) for part in body)
        for name, spec, body in _functions(answer)
    )


def _is_stub(statement: ast.AST) -> bool:
    """Whether it is `return None` or `raise NotImplementedError`."""
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
    """Whether one of the patterns is all of the code (see `_matches`)."""
    trees = _parse_python(answer) or ()
    body = [statement for tree in trees for statement in tree.body]
    if len(body) != 1:
        return False
    found = body[0].value if isinstance(body[0], ast.Expr) else body[0]
    return any(_matches(_read_pattern(pattern), found) for pattern in any_of)


def _code_has(answer: str, /, any_of: Sequence[str]) -> bool:
    """Whether one of the patterns occurs in the code (see `_matches`)."""
    return any(_occurs(answer, pattern) for pattern in any_of)


def _code_lacks(answer: str, /, patterns: Sequence[str]) -> bool:
    """Whether the code is Python and none of the patterns occurs in it."""
    return _python_parses(answer) and not any(_occurs(answer, pattern) for pattern in patterns)


def _occurs(text: str, pattern: str) -> bool:
    """A name alone occurs where the code uses it without giving it a meaning of its own."""
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


LIMITS = Limits(seconds=5.0, memory_mb=512)
"""Limits of one answer with all its tests."""


def _passes_tests(answer: str, /, tests: str) -> ProgramVerdict:
    """Run the tests against an answer's code, all its fences one after the other."""
    if _parse_python(answer) is None:
        return ProgramVerdict(False)
    program = reduce(joined, _python_code(answer), "")
    return run_program(program, Tests(source=tests), LIMITS)
