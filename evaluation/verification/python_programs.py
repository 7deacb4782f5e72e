"""Reads the program of a completion: code of its fences, or all of it."""

import re
import textwrap
import warnings
from collections.abc import Iterator, Sequence

from evaluation.checks.fences import Fence, read_fences

_DEFINITION = r"^(?:async[ \t]+def|def|class)[ \t]+{0}\b|^{0}[ \t]*(?::[^=\n]*)?=(?!=)"
_LONGEST = 300_000
"""Characters of the longest completion in which fences are looked for, or that is compiled here."""
_MOST_ATTEMPTS = 60
"""Lines before which a completion that is no valid code may end."""


def raw_program(completion: str, prefix: str) -> str:
    """Return a completion-style task's program: the prompt's code and what continues it, as it is."""
    return prefix + completion


def last_fence(completion: str) -> str:
    """Return the code between the last two lines with a fence, as LiveCodeBench does; empty without."""
    lines = completion.split("\n")
    fences = [number for number, line in enumerate(lines) if "```" in line]
    return "\n".join(lines[fences[-2] + 1 : fences[-1]]) if len(fences) > 1 else ""


def chat_program(completion: str, names: Sequence[str], prefix: str = "") -> str:
    """Return the program of a chat's answer.

    Its code is that of the last fence that defines one of the names, of all fences, or the whole text;
    or it stands before the first fence, as if the prompt had opened one. Where it is no valid Python, its
    end is dropped up to where it is.

    Args:
        names: What the tests need.
        prefix: Code that the prompt gave, such as a signature. It stands before the answer's code.
    """
    blocks = read_fences(completion) if len(completion) <= _LONGEST else ()
    fences = [fence.content for fence in blocks if _is_python(fence)]
    defining = [code for code in fences if _defines(code, names)]
    first = blocks[0].lines[0] if blocks else 0
    before = "\n".join(completion.split("\n")[:first])
    if defining:
        code = defining[-1]
    elif _defines(before, names) or (prefix and before[:1].isspace()):
        code = before
    else:
        code = "\n".join(fences) or completion
    programs = list(_with_prefix(code, names, prefix))
    return next(filter(is_valid, programs), None) or _without_end(programs)


def _is_python(fence: Fence) -> bool:
    return bool(fence.content.strip()) and (not fence.tag or fence.tag.startswith("py"))


def _defines(code: str, names: Sequence[str]) -> bool:
    return any(re.search(_DEFINITION.format(re.escape(name)), code, re.M) for name in names)


def _with_prefix(code: str, names: Sequence[str], prefix: str) -> Iterator[str]:
    """Yield what some code may mean: it continues the prefix, or begins the function anew."""
    if prefix and not _defines(code, names):
        yield prefix + code
        yield prefix + textwrap.indent(textwrap.dedent(code), "    ")
        return
    if prefix:
        yield f"{prefix}\n{code}"
    yield code


def is_valid(code: str) -> bool:
    """Return whether some code compiles; it does not run."""
    if len(code) > _LONGEST:
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(code, "<program>", "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True


def _without_end(programs: Sequence[str]) -> str:
    """Return the longest valid beginning of a program; the last program where none is valid."""
    for program in programs:
        lines = program.split("\n")
        starts = [n for n, line in enumerate(lines) if n and line[:1].strip()]
        for start in reversed(starts[-_MOST_ATTEMPTS:]):
            part = "\n".join(lines[:start]) + "\n"
            if part.strip() and is_valid(part):
                return part
    return programs[-1]
