"""NLTK's data for this process."""

from collections.abc import Iterator
from pathlib import Path

import nltk
import pytest

from evaluation.verification import nltk_data


@pytest.fixture
def with_nltk(nltk_folder: Path) -> Iterator[Path]:
    """This process reads NLTK's data from there and nowhere else."""
    before = list(nltk.data.path)
    nltk_data.use(nltk_folder)
    yield nltk_folder
    nltk.data.path[:] = before
