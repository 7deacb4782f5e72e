"""NLTK's data for tests: what `make demo` unpacks, unless EVAL_NLTK_DATA names a folder."""

import os
from collections.abc import Iterator
from pathlib import Path

import nltk
import pytest

from evaluation.verification import nltk_data
from tests.conftest import ROOT


@pytest.fixture(scope="session")
def nltk_folder() -> Path:
    """A folder of NLTK data, in which some resources may be missing."""
    folder = Path(os.environ.get("EVAL_NLTK_DATA", ROOT / ".demo/nltk_data"))
    if not folder.is_dir():
        pytest.skip(f"no {folder}: run `make demo` once, or set EVAL_NLTK_DATA")
    return folder


@pytest.fixture
def with_nltk(nltk_folder: Path) -> Iterator[Path]:
    """This process reads NLTK's data from there and nowhere else."""
    before = list(nltk.data.path)
    nltk_data.use(nltk_folder)
    yield nltk_folder
    nltk.data.path[:] = before
