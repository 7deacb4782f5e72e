"""What all tests share."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("EVAL_SHARED", ROOT.parent / "shared"))


@pytest.fixture(scope="session")
def shared() -> Path:
    """Folder of fixtures and references that are kept beside the checkout."""
    if not SHARED.is_dir():
        pytest.skip(f"no {SHARED}: the fixtures written by Nanotron and the references are not here")
    return SHARED
