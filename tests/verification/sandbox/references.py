"""Programs with tests from HumanEval and MBPP, wrong variants of them, and the sandboxes of this machine."""

import ast
import functools
import os
import random
import subprocess
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest

from evaluation.errors import SandboxError
from evaluation.verification.sandbox.model import Tests
from evaluation.verification.sandbox.run import MODES, describe_sandbox

EVERYTHING = bool(os.environ.get("EVAL_FULL"))
"""All of the rows and 200 variants, else an even sample of them."""

HEAVY = " 123"
"""A solution of MBPP that computes for seconds."""


@dataclass(frozen=True)
class Reference:
    name: str
    program: str
    tests: Tests


def _rows(path: Path) -> list[dict[str, Any]]:
    return parquet.read_table(path).to_pylist()  # type: ignore[no-any-return]


def human_eval(shared: Path) -> list[Reference]:
    folder = shared / "data/generative/openai_humaneval/openai_humaneval"
    return [
        Reference(
            row["task_id"],
            row["prompt"] + row["canonical_solution"],
            Tests(source=row["test"], entry_point=row["entry_point"], given=row["prompt"]),
        )
        for row in _rows(folder / "test-00000-of-00001.parquet")
    ]


def mbpp(shared: Path) -> Iterator[Reference]:
    for kind in ("full", "sanitized"):
        for file in sorted((shared / "data/generative/mbpp" / kind).glob("*.parquet")):
            for row in _rows(file):
                setup = row.get("test_setup_code") or "\n".join(row.get("test_imports") or [])
                asserts = (*row["test_list"], *(row.get("challenge_test_list") or []))
                yield Reference(
                    f"{kind} {row['task_id']}", row["code"], Tests(asserts=asserts, setup=setup)
                )


def sample(references: list[Reference], every: int) -> list[Reference]:
    light = [reference for reference in references if not reference.name.endswith(HEAVY)]
    return references if EVERYTHING else light[::every]


def passes_unsandboxed(reference: Reference, seconds: int) -> bool:
    """In a plain interpreter, as everybody runs it; for programs known to be harmless."""
    tests = reference.tests
    parts = [reference.program, tests.setup, *(tests.asserts or [tests.source])]
    if tests.entry_point:
        parts.append(f"check({tests.entry_point})")
    limit = f"import resource\nresource.setrlimit(resource.RLIMIT_CPU, ({seconds}, {seconds}))\n"
    code = limit + f"exec({chr(10).join(parts)!r}, {{'__name__': 'program'}})"
    command = [sys.executable, "-S", "-c", code]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


_SWAPS: dict[type, type] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Mod: ast.FloorDiv,
    ast.FloorDiv: ast.Div,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


def variants(references: list[Reference], count: int) -> list[Reference]:
    """Programs with one thing changed each, the same ones every time; some are still right."""
    generator = random.Random(1)
    found: list[Reference] = []
    while len(found) < count:
        reference = generator.choice(references)
        program = _changed(reference.program, generator)
        if program is not None:
            name = f"{len(found)} of {reference.name}"
            found.append(Reference(name, program, reference.tests))
    return found


def _changed(program: str, generator: random.Random) -> str | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # backslashes in its strings
        tree = ast.parse(program)
    places = [node for node in ast.walk(tree) if _can_change(node)]
    if not places:
        return None
    _change(generator.choice(places), generator)
    return ast.unparse(tree)


def _can_change(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return type(node.value) is int
    if isinstance(node, ast.Compare):
        return type(node.ops[0]) in _SWAPS
    if isinstance(node, ast.BinOp | ast.BoolOp):
        return type(node.op) in _SWAPS
    return isinstance(node, ast.Return | ast.If) and getattr(node, "value", True) is not None


def _change(node: Any, generator: random.Random) -> None:
    if isinstance(node, ast.Constant):
        node.value += generator.choice((-1, 1))  # type: ignore[operator]
    elif isinstance(node, ast.Compare):
        node.ops[0] = _SWAPS[type(node.ops[0])]()
    elif isinstance(node, ast.BinOp | ast.BoolOp):
        node.op = _SWAPS[type(node.op)]()
    elif isinstance(node, ast.If):
        node.test = ast.UnaryOp(ast.Not(), node.test)
    else:
        wrong = (f"[{ast.unparse(node.value)}]", "None", f"str({ast.unparse(node.value)})")
        node.value = ast.parse(generator.choice(wrong), mode="eval").body


@functools.cache
def offered() -> tuple[str, ...]:
    found = []
    for mode in MODES:
        try:
            describe_sandbox(modes=[mode])
        except SandboxError:
            continue
        found.append(mode)
    return tuple(found)


needs_sandbox = pytest.mark.skipif(
    len(offered()) < len(MODES),
    reason=f"this machine offers {' and '.join(offered()) or 'no sandbox'} of {' and '.join(MODES)}",
)
