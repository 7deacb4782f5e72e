"""No forgery on tests with plain data passes, written by somebody who had not seen the judge's code.

A tenth is run, all with EVAL_FULL.
"""

import gzip
import json
from pathlib import Path
from typing import Any

from evaluation.settings.verifiers import Program
from evaluation.verification.programs import _read_tests
from evaluation.verification.registry import verify
from evaluation.verification.sandbox.needs import use_of
from tests.tables import EVERYTHING
from tests.verification.sandbox.references import needs_sandbox

_EVERY = 1 if EVERYTHING else 10


def _blind(name: str) -> list[dict[str, Any]]:
    lines = gzip.decompress(Path(__file__).with_name(f"{name}.jsonl.gz").read_bytes())
    return [json.loads(line) for line in lines.splitlines()]


def _document(row: dict[str, Any]) -> dict[str, Any]:
    return {"tests": row["tests"], "entry_point": row["entry_point"], "prefix": row["prompt"]}


@needs_sandbox
def test_forgeries_without_knowledge_of_the_code_fail() -> None:
    verdicts = {}
    for row in _blind("forgeries_blind")[::_EVERY]:
        document = _document(row)
        if not use_of(_read_tests(document)).needs:
            verifier = Program(kind="program", seconds=5)
            verdicts[row["id"]] = verify(verifier, document, row["completion"])
    assert len(verdicts) >= 14
    assert {id: verdict for id, verdict in verdicts.items() if verdict.credit != 0} == {}


@needs_sandbox
def test_right_programs_of_their_author_pass() -> None:
    rows = _blind("right_blind")[::_EVERY]
    verdicts = {
        row["id"]: verify(Program(kind="program"), _document(row), row["completion"])
        for row in rows
    }
    assert {id: v for id, v in verdicts.items() if (v.credit, v.note) != (1, "")} == {}
