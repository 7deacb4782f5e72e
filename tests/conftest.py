"""What all tests share."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("EVAL_SHARED", ROOT.parent / "shared"))

settings.register_profile("busy", deadline=None)  # tests run on machines that do other things too
settings.load_profile("busy")


@pytest.hookimpl(tryfirst=True)  # before the groups are read
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Shares the files out between workers; those on the cluster are one group, and the first.

    They wait for the cluster most of the time, while another worker computes.
    """

    def on_cluster(item: pytest.Item) -> bool:
        return "slurm" in item.path.parent.relative_to(ROOT).parts

    for item in items:
        group = "slurm" if on_cluster(item) else str(item.path.relative_to(ROOT))
        item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=on_cluster, reverse=True)


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
