"""Programs with tests from HumanEval and MBPP, wrong variants of them, and whether there is a sandbox."""

import io
import random
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest

from evaluation.errors import SandboxError
from evaluation.verification.sandbox.model import Tests
from evaluation.verification.sandbox.run import describe_sandbox

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
    found = []
    for row in _rows(folder / "test-00000-of-00001.parquet"):
        tests = Tests(source=row["test"], entry_point=row["entry_point"])
        program = row["prompt"] + row["canonical_solution"]
        found.append(Reference(row["task_id"], program, tests))
    return found


def mbpp(shared: Path) -> Iterator[Reference]:
    for kind in ("full", "sanitized"):
        for file in sorted((shared / "data/generative/mbpp" / kind).glob("*.parquet")):
            for row in _rows(file):
                setup = row.get("test_setup_code") or "\n".join(row.get("test_imports") or [])
                asserts = (*row["test_list"], *(row.get("challenge_test_list") or []))
                yield Reference(
                    f"{kind} {row['task_id']}", row["code"], Tests(asserts=asserts, setup=setup)
                )


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


_SWAPS = dict(
    swap.split(" → ")
    for swap in "< → <=, <= → <, > → >=, >= → >, == → !=, != → ==, + → -, - → +, * → +, % → //, // → /, "
    "and → or, or → and, if → if not, return → return not".split(", ")
)


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
    """With another operator, number or condition in one place; None without such a place."""
    tokens = [*tokenize.generate_tokens(io.StringIO(program).readline)]
    places = [t for t in tokens if t.string in _SWAPS or t.type == tokenize.NUMBER]
    if not places:
        return None
    token = generator.choice(places)
    lines = program.splitlines(keepends=True)
    row, begin = token.start
    new = _SWAPS.get(token.string, f"({token.string} + 1)")
    lines[row - 1] = lines[row - 1][:begin] + new + lines[row - 1][token.end[1] :]
    return "".join(lines)


def _why_none() -> str:
    try:
        describe_sandbox()
    except SandboxError as reason:
        return str(reason)
    return ""


needs_sandbox = pytest.mark.skipif(bool(_why_none()), reason=_why_none())
