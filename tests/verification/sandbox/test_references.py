"""Right programs pass in the sandbox and wrong ones do not, as in a plain interpreter."""

import gzip
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from evaluation.verification.sandbox.model import Limits, ProgramVerdict, Tests
from evaluation.verification.sandbox.run import run_program
from tests.tables import sample
from tests.verification.sandbox.references import (
    Reference,
    needs_sandbox,
    passes_unsandboxed,
    references,
)

pytestmark = needs_sandbox


def _verdicts(programs: Sequence[Reference], seconds: float) -> dict[str, ProgramVerdict]:
    with ThreadPoolExecutor(2) as pool:
        limits = Limits(seconds=seconds)
        found = pool.map(lambda one: run_program(one.program, one.tests, limits), programs)
        return {one.name: verdict for one, verdict in zip(programs, found, strict=True)}


def _written() -> list[Reference]:
    """Programs of language models that use much of Python: dataclasses, threads, asyncio, numpy."""
    lines = gzip.decompress(Path(__file__).with_name("ordinary.jsonl.gz").read_bytes())
    rows = [json.loads(line) for line in lines.splitlines()]
    return [
        Reference(r["id"], r["program"], Tests(asserts=tuple(r["tests"]), setup=r["setup"]))
        for r in rows
    ]


def test_right_programs_pass(shared: Path) -> None:
    found = _verdicts(sample(8, [*references(shared), *_written()]), 60)
    assert {name: one for name, one in found.items() if one != ProgramVerdict(True)} == {}


def test_verdicts_are_those_of_a_plain_interpreter(shared: Path) -> None:
    variants = [changed for one in references(shared) if (changed := one.changed())]
    changed = sample(30, variants)
    found = _verdicts(changed, 2)
    plain = {one.name: passes_unsandboxed(one, seconds=2) for one in changed}
    assert {name: verdict.passed for name, verdict in found.items()} == plain
    assert False in plain.values()
