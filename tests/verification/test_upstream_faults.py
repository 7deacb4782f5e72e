"""Faults of other harnesses' metrics: theirs keep their names (docs/upstream_faults.md), ours are right.

A failure here means that a library has changed: update the page, and the table beside this file.
"""

from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from evaluation.settings.verifiers import Verifier
from evaluation.verification.registry import verify
from tests.conftest import ROOT
from tests.tables import cases
from tests.verification.test_verifiers import FLEXIBLE, document

PAGE = (ROOT / "docs/upstream_faults.md").read_text(encoding="utf-8")
VERIFIER: TypeAdapter[Verifier] = TypeAdapter(Verifier)


@pytest.mark.parametrize(
    ("theirs", "gold", "completion", "credit", "ours"),
    cases("verification/upstream_faults", "mathematics"),
)
def test_theirs_has_the_fault_and_ours_has_not(
    theirs: str, gold: str, completion: str, credit: int, ours: str
) -> None:
    named = FLEXIBLE if theirs == "flexible-extract" else VERIFIER.validate_python({"kind": theirs})
    assert verify(named, {"gold": gold}, completion).credit == credit
    right = verify(VERIFIER.validate_python({"kind": ours}), {"gold": gold}, completion)
    assert right.credit == 1 - credit


@pytest.mark.parametrize(
    ("kind", "name", "arguments", "text", "credit"),
    cases("verification/upstream_faults", "instructions"),
)
def test_faults_of_instructions(
    kind: str, name: str, arguments: dict[str, Any], text: str, credit: int, with_nltk: Path
) -> None:
    settings = VERIFIER.validate_python({"kind": kind})
    assert verify(settings, document((name, arguments)), text).credit == credit
    assert name in PAGE
