"""What all tests share."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("EVAL_SHARED", ROOT.parent / "shared"))

settings.register_profile("busy", deadline=None)  # tests run on machines that do other things too
settings.load_profile("busy")


@pytest.fixture(scope="session")
def shared() -> Path:
    """Folder of fixtures and references that are kept beside the checkout."""
    if not SHARED.is_dir():
        pytest.skip(
            f"no {SHARED}: the fixtures written by Nanotron and the references are not here"
        )
    return SHARED


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """SmolLM2-135M-Instruct as a Hugging Face folder in float32, as `make demo` derives it."""
    default = ROOT / ".demo/models/smollm2-135m-instruct"
    folder = Path(os.environ.get("EVAL_SMOLLM2", default))
    if not (folder / "config.json").is_file():
        pytest.skip(f"no {folder}: run `make demo` once, or set EVAL_SMOLLM2")
    return folder
