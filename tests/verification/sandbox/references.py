"""Programs with tests from HumanEval and MBPP, a wrong variant of each, and whether there is a sandbox."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest

from evaluation.errors import SandboxError
from evaluation.verification.sandbox.model import Tests
from evaluation.verification.sandbox.run import describe_sandbox

SWAPS = {" + ": " - ", " - ": " + ", " < ": " >= ", " > ": " <= ", " == ": " != ", " and ": " or "}


@dataclass(frozen=True)
class Reference:
    name: str
    program: str
    tests: Tests

    def changed(self) -> "Reference | None":
        """With another operator in one place; None without such a place."""
        for old, new in SWAPS.items():
            if old in self.program:
                return replace(self, program=self.program.replace(old, new, 1))
        return None


def _rows(path: Path) -> list[dict[str, Any]]:
    return parquet.read_table(path).to_pylist()  # type: ignore[no-any-return]


def references(shared: Path) -> Iterator[Reference]:
    folder = shared / "data/generative"
    for row in _rows(folder / "openai_humaneval/openai_humaneval/test-00000-of-00001.parquet"):
        tests = Tests(source=row["test"], entry_point=row["entry_point"])
        yield Reference(row["task_id"], row["prompt"] + row["canonical_solution"], tests)
    for file in sorted((folder / "mbpp/full").glob("*.parquet")):
        for row in _rows(file):
            asserts = (*row["test_list"], *(row.get("challenge_test_list") or []))
            tests = Tests(asserts=asserts, setup=row.get("test_setup_code") or "")
            yield Reference(f"mbpp {row['task_id']}", row["code"], tests)


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


def _why_none() -> str:
    try:
        describe_sandbox()
    except SandboxError as reason:
        return str(reason)
    return ""


needs_sandbox = pytest.mark.skipif(bool(_why_none()), reason=_why_none())
