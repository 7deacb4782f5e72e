"""Known faults of other harnesses' metrics, which keep their names here (docs/upstream_faults.md).

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
    ("theirs", "gold", "completion", "credit"),
    cases("verification/upstream_faults", "mathematics"),
)
def test_faults_of_answers(theirs: str, gold: str, completion: str, credit: int) -> None:
    named = FLEXIBLE if theirs == "flexible-extract" else VERIFIER.validate_python({"kind": theirs})
    assert verify(named, {"gold": gold}, completion).credit == credit


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
