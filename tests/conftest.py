"""What all tests share."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadFileScheduling

if TYPE_CHECKING:  # it imports torch, which a verifier's process has no memory for
    from tests.workflow.world import World

ON_CLUSTER = "tests/slurm/"

LONG: tuple[str, ...] = (
    "tests/benchmarks/test_kernels.py",  # every kernel of every model, compiled for two GPUs
)
"""What only `make test-all` runs: every fault and every case, of which `make test` runs some."""

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("EVAL_SHARED", ROOT.parent / "shared"))

settings.register_profile("busy", deadline=None)  # tests run on machines that do other things too
settings.load_profile("busy")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Those on the cluster come first: they mostly wait, while another worker computes."""
    items.sort(key=lambda item: not item.nodeid.startswith(ON_CLUSTER))
    for item in items:
        if item.nodeid.startswith(LONG):
            item.add_marker(pytest.mark.long)


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
def prefilled_world(tmp_path_factory: pytest.TempPathFactory) -> "World":
    """A tiny world whose prefill has run; to be read, not changed."""
    from tests.workflow.world import build_prefilled

    return build_prefilled(tmp_path_factory.mktemp("prefilled") / "world")


@pytest.fixture
def world(prefilled_world: "World", tmp_path: Path) -> "World":
    """A copy of it, to change."""
    from tests.workflow.world import copy_world

    return copy_world(prefilled_world, tmp_path / "world")
