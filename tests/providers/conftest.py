"""A stand-in for a provider's environment."""

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evaluation.checkpoints.subjects import step_subject
from evaluation.flow.make import make
from evaluation.flow.targets import COLLECT, SCORE
from evaluation.settings.plan import StagePlan

Installed = Callable[..., Path]


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    """Writes an interpreter that runs the stand-in, whatever module it is given."""

    def write(**does: Any) -> Path:
        path = tmp_path / "environment" / "python"
        path.parent.mkdir(exist_ok=True)
        program = Path(__file__).parent / "stand_in.py"
        words = [sys.executable, str(program), json.dumps(does)]
        path.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        path.chmod(0o755)
        return path

    return write


def evaluated(plan: StagePlan, file: str) -> dict[str, Any]:
    """The content of a tier's file after a step was scored and collected."""
    subject = step_subject(plan, 5)
    for done in (make(SCORE, subject), make(COLLECT, subject)):
        assert done.error is None, done.error
    found: dict[str, Any] = json.loads((subject.folder / file).read_text())
    return found
