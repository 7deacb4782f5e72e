"""Programs by language models that knew the documentation alone: ordinary, forged and hostile ones.

Every ordinary one passes in a plain interpreter. A fifth of each kind is run, all with EVAL_FULL.
"""

import functools
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from evaluation.verification.sandbox.model import FORGED, UNGUARDED, Limits, ProgramVerdict, Tests
from evaluation.verification.sandbox.run import MODES, run_program
from tests.tables import sample
from tests.verification.sandbox.references import needs_sandbox

pytestmark = needs_sandbox
_LIMITS = Limits(seconds=5, memory_mb=512)
_HARMLESS = {
    "host-005": "lists /, where only the folders are that lead to Python's own",
    "host-006": "lists /root, which leads to Python's own files where that is installed there",
    "host-007": "walks a folder that leads to numpy's files where that is installed there",
    "host-008": "sees that /root is there, which Landlock does not hide",
    "host-128": "prints 4 GiB, which nobody keeps",
    "host-222": "lists /root, as host-006",
    "h2_list_root": "lists a folder that leads to Python's own files",
    "h2_stat_probe": "sees that such a folder is there",
    "h2_host_facts": "reads the machine's load",
}
"""They get what they ask for, which is nothing of anybody's."""


@functools.cache
def _written(kind: str) -> list[dict[str, Any]]:
    lines = gzip.decompress(Path(__file__).with_name("programs.jsonl.gz").read_bytes())
    rows = [json.loads(line) for line in lines.splitlines()]
    return [row for row in rows if row["kind"] == kind]


def _outcomes(kind: str, mode: str) -> dict[str, ProgramVerdict]:
    found = {}
    for row in sample(5, _written(kind)):
        tests = Tests(asserts=tuple(row["tests"]), setup=row["setup"])
        found[row["id"]] = run_program(row["program"], tests, _LIMITS, modes=[mode])
    return found


def test_there_are_enough() -> None:
    counts = {kind: len(_written(kind)) for kind in ("ordinary", "forgery", "hostile")}
    assert counts == {"ordinary": 308, "forgery": 260, "hostile": 326}


@pytest.mark.parametrize("mode", MODES)
def test_ordinary_programs_pass(mode: str) -> None:
    outcomes = _outcomes("ordinary", mode)
    failed = {name for name, outcome in outcomes.items() if outcome.passed is not True}
    assert failed == set(), {name: outcomes[name] for name in failed}
    unguarded = [name for name, o in outcomes.items() if o.note == UNGUARDED]
    assert len(unguarded) < 0.7 * len(outcomes)


def test_forged_programs_fail() -> None:
    outcomes = _outcomes("forgery", MODES[0])
    assert {name: o for name, o in outcomes.items() if o.passed is not False} == {}
    assert [name for name, o in outcomes.items() if o.note == FORGED]


@pytest.mark.parametrize("mode", MODES)
def test_hostile_programs_do_not_get_out(mode: str) -> None:
    outcomes = _outcomes("hostile", mode)
    passed = {name for name, outcome in outcomes.items() if outcome.passed is not False}
    assert passed <= _HARMLESS.keys()
