"""A stand-in for a provider's environment."""

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.verification.conftest import nltk_folder  # noqa: F401

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
