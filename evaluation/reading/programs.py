"""Reads the program of a completion: which blocks of code it is made of, and where they end."""

import ast
import builtins
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from evaluation.reading.code_blocks import Block, at_fences, code_text, read_blocks
from evaluation.reading.python_code import parsed, valid_part
from evaluation.reading.text import without_outer

_FUTURE = re.compile(
    r"^from[ \t]+__future__[ \t]+import[ \t]+(?:\([^()]{0,500}\)|[^\n(]*)[^\n]*\n?", re.M
)
_DEFINITION = (
    r"^(?:async[ \t]+def|def|class)[ \t]+{}\b|^{}[ \t]*=(?!=)"
    r"|^(?:from|import)\b.*\b{}\b[ \t]*(?:#.*)?$"
)
_MOST_FENCES = 6
_LONGEST = 300_000
"""Characters of the longest completion in which code is looked for; a longer one is code as a whole."""


@dataclass(frozen=True)
class Wanted:
    """The names that a program must define, and the code that it continues (empty if none)."""

    names: Sequence[str]
    prefix: str = ""
    entry_point: str = ""

    def defined_by(self, code: str) -> bool:
        """Return whether code defines one of the names, judged by its text, which may be invalid."""
        return any(defines(code, name) for name in self.names)


def defines(code: str, name: str) -> bool:
    """Return whether some code, which may be invalid, gives a name a value at its margin."""
    escaped = re.escape(name)
    return re.search(_DEFINITION.format(escaped, escaped, escaped), code, re.M) is not None


def read_program(completion: str, wanted: Wanted) -> str | None:
    """Return the program of a completion, with the code that it continues; None if there is no code."""
    program = _program(completion, wanted)
    return _without_pytest(program, wanted) if program and "pytest" in program else program


def _program(completion: str, wanted: Wanted) -> str | None:
    if len(completion) > _LONGEST:
        return _completed(completion, wanted)
    text = code_text(completion)
    if (begun := _begun(text, wanted)) is not None:
        return begun
    blocks, lines = read_blocks(text)
    if not any(block.may_be_python for block in blocks):
        return _completed(_unfenced(text, wanted), wanted)
    code = _chosen(blocks, lines, wanted)
    return None if code is None else _completed(code, wanted)


def _without_pytest(program: str, wanted: Wanted) -> str:
    """Return a program without the tests that it has for pytest, which the sandbox does not have."""
    tree = parsed(program)
    lines = program.split("\n")
    for node in reversed(tree.body if tree else []):
        decorators = getattr(node, "decorator_list", [])
        names = {getattr(node, "name", ""), *(alias.name for alias in getattr(node, "names", ()))}
        is_test = any(name.startswith("test_") or name == "pytest" for name in names)
        if (
            is_test or any("pytest" in ast.unparse(decorator) for decorator in decorators)
        ) and not (names & {*wanted.names}):
            del lines[_first_line(node) - 1 : node.end_lineno]
    return "\n".join(lines)


def _begun(text: str, wanted: Wanted) -> str | None:
    """Return the program of a text that begins with code, which a fence without an opening one ends."""
    for before, info, after in islice(at_fences(text), _MOST_FENCES):
        if not before.strip():
            return None
        code = valid_part(before, lambda code: _completed(code, wanted) or "", may_be_prose=False)
        if code is None and before.count('"""') % 2:  # the fence is in a text of the code
            continue
        if code is None or not _is_answer(code, wanted):
            return None
        if info and wanted.defined_by("".join(block.content for block in read_blocks(text)[0])):
            return None
        return _completed(_with_helpers(code, [*read_blocks(after)[0]], wanted), wanted)
    return None


def _is_answer(code: str, wanted: Wanted) -> bool:
    """Return whether valid code defines what is wanted, or is the body of a function."""
    if wanted.defined_by(code):
        return True
    if not wanted.prefix:
        return False
    tree = parsed(_completed(code, wanted) or "")
    function = _last_function(tree)
    body = function.body if function else []
    return any(not _is_idle(statement) for statement in body)


def _last_function(tree: ast.Module | None) -> ast.FunctionDef | None:
    functions = [node for node in (tree.body if tree else []) if isinstance(node, ast.FunctionDef)]
    return functions[-1] if functions else None


def _is_idle(statement: ast.stmt) -> bool:
    """Return whether a statement does nothing: a mere word or text, `...` or `pass`."""
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant | ast.Name | ast.Attribute | ast.Compare)
    return isinstance(statement, ast.Pass)


def _unfenced(text: str, wanted: Wanted) -> str:
    """Return the code of a text without fences; the whole text if none of it is code."""
    whole = text.strip()
    inline = without_outer(whole, "`")
    text = text if inline == whole else inline
    code = valid_part(text, lambda code: _completed(code, wanted) or "", may_be_prose=True)
    return text if code is None else code


def _chosen(blocks: Sequence[Block], lines: Sequence[str], wanted: Wanted) -> str | None:
    """Return the code of the blocks: the last one that defines what is wanted, with its helpers."""
    python = [block for block in blocks if block.is_python]
    whole = [_extended(block, blocks, lines, wanted) for block in python or blocks]
    defining = [code for code in whole if wanted.defined_by(code)]
    if not defining and python:
        others = [block.content for block in blocks if block.may_be_python and not block.is_python]
        defining = [code for code in others if wanted.defined_by(code) and parsed(code)]
    finished = [code for code in defining if parsed(code) and not _is_stub(code, wanted)]
    if defining:
        return _with_helpers((finished or defining)[-1], blocks, wanted)
    if wanted.prefix:
        bodies = [code for code in whole if _is_answer(code, wanted) and _returns(code)]
        if bodies:
            return bodies[-1]
    code = "\n".join(part.rstrip("\n") + "\n" for part in whole)
    return code if code.strip() else None


def _extended(block: Block, blocks: Sequence[Block], lines: Sequence[str], wanted: Wanted) -> str:
    """Return the code of a block, which a fence in its own text may have cut in two."""

    def wrap(code: str) -> str:
        return _completed(code, wanted) or "" if wanted.defined_by(code) else code

    valid = valid_part(block.content, wrap, may_be_prose=False)
    if valid is not None:
        return valid
    for later in blocks[blocks.index(block) + 1 :][:5]:
        for end in (later.end - 1, later.start):
            longer = "\n".join(lines[block.start + 1 : end]) + "\n"
            if parsed(longer) is not None:
                return longer
    return block.content


def _returns(code: str) -> bool:
    return re.search(r"^\s*(?:return|yield|raise)\b", code, re.M) is not None


def _is_stub(code: str, wanted: Wanted) -> bool:
    """Return whether what is wanted is only declared: its body is a text, `...` or `pass`."""
    tree = parsed(code)
    functions = [
        node
        for node in (tree.body if tree else [])
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name in wanted.names
    ]
    return bool(functions) and all(all(map(_is_idle, node.body)) for node in functions)


def _with_helpers(code: str, blocks: Sequence[Block], wanted: Wanted) -> str:
    """Return code with the definitions of other blocks that it needs, in their order."""
    others = [block.content for block in blocks if block.may_be_python and block.content != code]
    pieces = [piece for other in others for piece in _definitions(other)]
    needed = _needed_names(code)
    chosen: list[tuple[str, str]] = []
    for name, source in reversed(pieces):
        if name in needed and name not in wanted.names and all(name != one for one, _ in chosen):
            chosen.insert(0, (name, source))
            needed |= _needed_names(source)
    sources = list(dict.fromkeys(source for _, source in chosen))
    return joined("\n".join(sources), code) if sources else code


def _definitions(code: str) -> Iterator[tuple[str, str]]:
    """Yield the names that code defines at its margin, each with the source of the definition."""
    tree = parsed(code)
    for node in tree.body if tree else []:
        source = "\n".join(code.split("\n")[_first_line(node) - 1 : node.end_lineno])
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                yield (alias.asname or alias.name).partition(".")[0], source
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, source
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for name in (part for target in targets for part in ast.walk(target)):
                if isinstance(name, ast.Name):
                    yield name.id, source


def _first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _needed_names(code: str) -> set[str]:
    """Return the names that code reads and never gives a value."""
    tree = parsed(code)
    nodes = list(ast.walk(tree)) if tree else []
    names = [node for node in nodes if isinstance(node, ast.Name)]
    read = {node.id for node in names if isinstance(node.ctx, ast.Load)}
    written = {node.id for node in names if not isinstance(node.ctx, ast.Load)}
    written |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    written |= {name for name, _ in _definitions(code)}
    return read - written - set(dir(builtins))


def joined(before: str, code: str) -> str:
    """Return two pieces of code one after the other, imports from `__future__` at the beginning."""
    future = _FUTURE.findall(code)
    return "".join([*future, before, "\n", _FUTURE.sub("", code)])


def _completed(code: str, wanted: Wanted) -> str | None:
    """Return code with the prefix that it continues; if it defines the entry point, with its rest."""
    if not code.strip():
        return None
    prefix = wanted.prefix
    if not prefix:
        return code
    if wanted.entry_point and defines(code, wanted.entry_point):
        if code[:1].isspace() and _is_begun_anew(prefix + code, wanted.entry_point):
            return prefix + code
        return joined(_without(prefix, wanted.entry_point), code)
    bodies = list(_bodies(prefix, code))
    return next((body for body in bodies if parsed(body) is not None), bodies[0])


def _is_begun_anew(code: str, name: str) -> bool:
    """Return whether code defines a function that does nothing, and then again; the last one counts."""
    tree = parsed(code)
    functions = [node for node in (tree.body if tree else []) if getattr(node, "name", "") == name]
    return len(functions) > 1 and all(map(_is_idle, getattr(functions[0], "body", ())))


def _without(prefix: str, name: str) -> str:
    """Return the prefix without the definition of `name`; empty if it is not valid code."""
    tree = parsed(prefix)
    others = [node for node in (tree.body if tree else []) if getattr(node, "name", None) != name]
    return ast.unparse(ast.Module(others, []))


def _bodies(prefix: str, code: str) -> Iterator[str]:
    """Yield the prefix with the code: as it is indented, or with the prefix's indentation, more or alone."""
    code = code.lstrip("\n") if code.lstrip("\n") != code and prefix.endswith("\n") else code
    last = prefix.rstrip("\n").rsplit("\n", 1)[-1]
    indentation = last[: len(last) - len(last.lstrip())]
    if not indentation or not prefix.endswith("\n"):
        yield prefix + code
        return
    every = prefix + textwrap.indent(code, indentation)
    if code[:1].isspace():
        yield prefix + code
        yield every
        yield prefix + textwrap.indent(textwrap.dedent(code), indentation)
    else:
        yield every
        yield prefix + indentation + code
