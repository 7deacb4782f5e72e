"""Folders of tokenizers of all kinds, made once."""

from pathlib import Path

import pytest

from tests.tokenizers.kinds import write_kinds


@pytest.fixture(scope="session")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folder of each kind, by its name."""
    return dict(write_kinds(tmp_path_factory.mktemp("kinds")))
