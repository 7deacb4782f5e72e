"""Right programs pass in the sandbox and wrong ones do not, as in a plain interpreter."""

import gzip
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from evaluation.verification.sandbox.model import Limits, ProgramVerdict, Tests
from evaluation.verification.sandbox.run import run_program
from tests.tables import sample
from tests.verification.sandbox.references import (
    HEAVY,
    Reference,
    human_eval,
    mbpp,
    needs_sandbox,
    passes_unsandboxed,
    variants,
)

pytestmark = needs_sandbox


def _verdicts(references: Sequence[Reference], seconds: float) -> dict[str, ProgramVerdict]:
    with ThreadPoolExecutor(2) as pool:
        limits = Limits(seconds=seconds)
        found = pool.map(lambda one: run_program(one.program, one.tests, limits), references)
        return {one.name: verdict for one, verdict in zip(references, found, strict=True)}


@contextmanager
def _busy(loops: int) -> Iterator[None]:
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(loops)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _written() -> list[Reference]:
    """Programs of language models that use much of Python: dataclasses, threads, asyncio, numpy."""
    lines = gzip.decompress(Path(__file__).with_name("ordinary.jsonl.gz").read_bytes())
    rows = [json.loads(line) for line in lines.splitlines()]
    return [
        Reference(r["id"], r["program"], Tests(asserts=tuple(r["tests"]), setup=r["setup"]))
        for r in rows
    ]


@pytest.mark.parametrize("loops", [0, 4])
def test_right_programs_pass_on_an_idle_and_on_a_busy_machine(shared: Path, loops: int) -> None:
    references = [*human_eval(shared), *mbpp(shared), *_written()]
    with _busy(loops):
        found = _verdicts(sample(4, references), 60)
    assert {name: one for name, one in found.items() if one != ProgramVerdict(True)} == {}


def test_verdicts_are_those_of_a_plain_interpreter(shared: Path) -> None:
    references = [r for r in (*human_eval(shared), *mbpp(shared)) if not r.name.endswith(HEAVY)]
    changed = sample(5, variants(references, 200))
    found = _verdicts(changed, 2)
    plain = {one.name: passes_unsandboxed(one, seconds=2) for one in changed}
    assert {name: verdict.passed for name, verdict in found.items()} == plain
    assert len(set(plain.values())) == 2
