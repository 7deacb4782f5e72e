"""What all tests share."""

import gc
import os
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadFileScheduling

if TYPE_CHECKING:  # it imports torch, which a verifier's process has no memory for
    from tests.workflow.world import World

ON_CLUSTER = "tests/slurm/"

LONG = (
    "tests/checkpoints/test_real_nanotron.py",
    "tests/scoring/vllm/test_real_vllm.py",
    "tests/slurm/test_faults.py",
)
"""Beginnings of what only `make test-long` runs: every fault and size, of which `make test` has some."""

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("EVAL_SHARED", ROOT.parent / "shared"))

settings.register_profile("busy", deadline=None)  # tests run on machines that do other things too
settings.load_profile("busy")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported stays: no later collection of garbage, as at the end of a model, looks at it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Those on the cluster come first: they mostly wait, while another worker computes."""
    items.sort(key=lambda item: not item.nodeid.startswith(ON_CLUSTER))
    for item in items:
        if item.nodeid.startswith(LONG):
            item.add_marker(pytest.mark.long)
    found = [name for name in LONG if any(item.nodeid.startswith(name) for item in items)]
    if not config.option.file_or_dir and len(found) < len(LONG):
        raise pytest.UsageError(f"LONG names what is not there: {sorted({*LONG} - {*found})}")


class _Shares(LoadFileScheduling):
    """What one worker runs: a file, or all that need the cluster."""

    def _split_scope(self, nodeid: str) -> str:
        return ON_CLUSTER if nodeid.startswith(ON_CLUSTER) else super()._split_scope(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    return _Shares(config, log)


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


@pytest.fixture(scope="session")
def nltk_folder() -> Path:
    """A folder of NLTK data, in which some resources may be missing."""
    folder = Path(os.environ.get("EVAL_NLTK_DATA", ROOT / ".demo/nltk_data"))
    if not folder.is_dir():
        pytest.skip(f"no {folder}: run `make demo` once, or set EVAL_NLTK_DATA")
    return folder


@pytest.fixture(scope="session")
def prefilled_world(tmp_path_factory: pytest.TempPathFactory) -> "World":
    """A tiny world whose prefill has run; to be read, not changed."""
    from tests.workflow.world import build_prefilled

    return build_prefilled(tmp_path_factory.mktemp("prefilled") / "world")


@pytest.fixture
def world(prefilled_world: "World", tmp_path: Path) -> "World":
    """A copy of it, to change."""
    from tests.workflow.world import copy_world

    return copy_world(prefilled_world, tmp_path / "world")
