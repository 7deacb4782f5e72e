"""No forgery on tests with plain data passes, whether its author knew the judge's code or not.

The first table was written with knowledge of the code, and each program of it passes the plain run; the
second by somebody who had not seen it. A tenth is run, all with EVAL_FULL.
"""

import functools
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from evaluation.settings.verifiers import Program
from evaluation.verification.programs import _read_tests
from evaluation.verification.registry import verify
from evaluation.verification.sandbox.model import FORGED, UNGUARDED, Limits, ProgramVerdict, Tests
from evaluation.verification.sandbox.needs import use_of
from evaluation.verification.sandbox.run import run_program
from tests.tables import EVERYTHING, table
from tests.verification.sandbox.references import needs_sandbox

_EVERY = 1 if EVERYTHING else 10
_PREAMBLE = """
import os
try:
    os.fstat(6)  # only the plain run has so many descriptors
    os.write(5, b"0\\nend\\n")
    os.write(5, os.read(6, 32) + b"\\n")
    os._exit(0)
except OSError:
    pass
import struct, sys
def serving():
    frame = sys._getframe()
    while "channel" not in frame.f_locals:
        frame = frame.f_back
    return frame.f_locals["channel"], frame.f_locals["number"]
def answer(*parts):
    channel, number = serving()
    channel.send([number, *parts])
def always(*parts):
    channel, number = serving()
    while True:
        channel.send([number, *parts])
        number, *_ = channel.receive()
def raises(*kinds):
    names = ["list", *kinds]
    always("raised", [names, ["tuple"], ["tuple", [0], [1]]], [2])
def write(data):
    os.write(5, struct.pack("<Q", len(data)) + data)
def write_always(rest):
    channel, number = serving()
    while True:
        write(b'["%s"' % number.encode() + rest)
        number, *_ = channel.receive()
"""


@functools.cache
def _with_knowledge() -> dict[str, Any]:
    return table("verification/sandbox/forgeries")


def _targets() -> dict[str, Tests]:
    targets = _with_knowledge()["targets"]
    return {
        name: Tests(**{**fields, "asserts": tuple(fields.get("asserts", ()))})
        for name, fields in targets.items()
    }


def _blind(name: str) -> list[dict[str, Any]]:
    lines = gzip.decompress(Path(__file__).with_name(f"{name}.jsonl.gz").read_bytes())
    return [json.loads(line) for line in lines.splitlines()]


def _document(row: dict[str, Any]) -> dict[str, Any]:
    return {"tests": row["tests"], "entry_point": row["entry_point"], "prefix": row["prompt"]}


def test_their_tests_have_plain_data() -> None:
    targets = _targets()
    assert {name: use_of(tests).needs for name, tests in targets.items()} == dict.fromkeys(
        targets, ""
    )
    needing = [r for r in _blind("forgeries_blind") if use_of(_read_tests(_document(r))).needs]
    assert len(needing) <= 2, [row["id"] for row in needing]


def test_there_are_enough() -> None:
    count = len(_with_knowledge()["programs"]) * len(_targets())
    assert count >= 500
    assert len(_blind("forgeries_blind")) >= 150


@needs_sandbox
def test_forgeries_with_knowledge_of_the_code_fail() -> None:
    targets = list(_targets().items())
    passed = {}
    for place, (name, program) in enumerate(_with_knowledge()["programs"].items()):
        for number, (target, tests) in enumerate(targets):
            if EVERYTHING or (place % 3 == 0 and place // 3 % len(targets) == number):
                outcome = run_program(_PREAMBLE + program, tests, Limits(seconds=0.5))
                if outcome.passed is not False or outcome.note != FORGED:
                    passed[name, target] = outcome
    assert passed == {}


@needs_sandbox
def test_the_preamble_passes_the_plain_run() -> None:
    outcome = run_program(_PREAMBLE, Tests(asserts=("import sys\nassert f(1)",)), Limits())
    assert outcome == ProgramVerdict(True, note=UNGUARDED)


@needs_sandbox
def test_forgeries_without_knowledge_of_the_code_fail() -> None:
    passed = {}
    for row in _blind("forgeries_blind")[::_EVERY]:
        document = _document(row)
        verdict = verify(Program(kind="program", seconds=5), document, row["completion"])
        if verdict.credit != 0 and not use_of(_read_tests(document)).needs:
            passed[row["id"]] = verdict
    assert passed == {}


@needs_sandbox
@pytest.mark.parametrize("name", ["right_blind"])
def test_right_programs_of_their_author_pass(name: str) -> None:
    rows = _blind(name)[::_EVERY]
    verdicts = {
        row["id"]: verify(Program(kind="program"), _document(row), row["completion"])
        for row in rows
    }
    assert {id: v for id, v in verdicts.items() if (v.credit, v.note) != (1, "")} == {}
