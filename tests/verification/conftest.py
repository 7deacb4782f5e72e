"""NLTK's data for tests: what `make demo` unpacks, unless EVAL_NLTK_DATA names a folder."""

import os
from pathlib import Path

import pytest

from tests.conftest import ROOT


@pytest.fixture(scope="session")
def nltk_folder() -> Path:
    """A folder of NLTK data, in which some resources may be missing."""
    folder = Path(os.environ.get("EVAL_NLTK_DATA", ROOT / ".demo/nltk_data"))
    if not folder.is_dir():
        pytest.skip(f"no {folder}: run `make demo` once, or set EVAL_NLTK_DATA")
    return folder
