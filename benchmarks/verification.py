"""python -m benchmarks.verification SHARED: measures how many answers and programs a second are verified.

SHARED is a folder with `data/generative`. The pool of processes, which can be killed, is compared with
the plain way in one process, which an endless answer would block: math-verify in a loop, and each
program in its own interpreter without a sandbox. Start-up time is measured separately.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet

from evaluation.reporting.terminal import as_table
from evaluation.settings.verifiers import MathVerify, Program
from evaluation.verification.pool import VerifierJob, verify_all
from evaluation.verification.registry import verify
from tests.verification.sandbox.references import human_eval, passes_unsandboxed

MATH = MathVerify(kind="math_verify")
PROGRAM = Program(kind="program")


def math_jobs(shared: Path) -> list[VerifierJob]:
    """Return jobs for each solution of MATH-500: once with its own gold, once with another's."""
    path = shared / "data/generative/MATH-500/default/test-00000-of-00001.parquet"
    rows: list[dict[str, Any]] = parquet.read_table(path).to_pylist()
    return [
        (MATH, {"gold": gold["answer"]}, row["solution"])
        for row, next_row in zip(rows, [*rows[1:], rows[0]], strict=True)
        for gold in (row, next_row)
    ]


def program_jobs(shared: Path) -> list[VerifierJob]:
    return [
        (PROGRAM, {"tests": one.tests.source, "entry_point": one.tests.entry_point}, one.program)
        for one in human_eval(shared)
    ]


def pooled(jobs: Sequence[VerifierJob]) -> tuple[float, float, int]:
    """Return the seconds to the first verdict, the seconds of the others, and how many pass."""
    start = time.perf_counter()
    first, passed = None, 0
    for _, verdict in verify_all(jobs, workers=os.cpu_count() or 1):
        first = first or time.perf_counter()
        passed += verdict.credit == 1
    assert first is not None
    return first - start, time.perf_counter() - first, passed


def plain(count: int, passes: Callable[[int], bool]) -> tuple[float, float, int]:
    start = time.perf_counter()
    passed = int(passes(0))
    first = time.perf_counter()
    passed += sum(passes(number) for number in range(1, count))
    return first - start, time.perf_counter() - first, passed


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.verification", description=__doc__)
    parser.add_argument("shared", type=Path)
    shared = parser.parse_args(arguments).shared
    math, programs, known = math_jobs(shared), program_jobs(shared), human_eval(shared)

    def is_equal(number: int) -> bool:
        verifier, document, text = math[number]
        return verify(verifier, document, text).credit == 1

    found = {
        ("math_verify", "pool"): (len(math), pooled(math)),
        ("math_verify", "plain loop"): (len(math), plain(len(math), is_equal)),
        ("programs", "pool, sandboxed"): (len(programs), pooled(programs)),
        ("programs", "one by one, unsandboxed"): (
            len(known),
            plain(len(known), lambda number: passes_unsandboxed(known[number], 10)),
        ),
    }
    rows = [["what", "how", "answers", "pass", "first after", "a second"]]
    for (what, how), (count, (first, rest, passed)) in found.items():
        rate = f"{(count - 1) / rest:.1f}"
        rows.append([what, how, str(count), str(passed), f"{first:.1f} s", rate])
    print(f"{os.cpu_count()} cores\n\n{as_table(rows)}")


if __name__ == "__main__":
    main(sys.argv[1:])
