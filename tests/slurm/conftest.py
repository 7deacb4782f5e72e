"""The cluster, a world on it, and what an undisturbed run gives."""

import fcntl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.histories.warm import well
from tests.slurm import cluster
from tests.slurm.runs import BOTH, Run
from tests.workflow.world import World, build_world

LOCK = "/run/evaluation-slurm.lock"
SLICES = 8


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.slurm)


@pytest.fixture(scope="session")
def running() -> Iterator[None]:
    """The cluster. Other test runs wait until this one ends."""
    if missing := cluster.missing():
        pytest.skip(f"no real Slurm to test on: {missing}")
    with open(LOCK, "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        cluster.up()
        yield
        cluster.down()


@pytest.fixture(scope="session")
def world(running: None, tmp_path_factory: pytest.TempPathFactory) -> World:
    """Two stages, prefilled; the first has eight slices: a job has many moments between two stored items."""
    world = build_world(tmp_path_factory.mktemp("slurm") / "world")
    # Of other lengths, as one that is stored under another name is not scored again.
    slices = {f"text{n}": {"dataset": "made/text", "tokens": 1280 - 64 * n} for n in range(SLICES)}
    suite = world.folder / "suites/many.yaml"
    suite.write_text(yaml.safe_dump({"extends": "base", "slices": slices}))
    world.change_stage("stage1", suites=["many"])
    well(world.evaluation("prefill"))
    return world


MakeRun = Callable[..., Run]


@pytest.fixture
def make_run(world: World, tmp_path: Path) -> Iterator[MakeRun]:
    """Makes runs on a cluster whose nodes are idle; at the end all of them and all jobs are ended."""
    cluster.restore()
    runs: list[Run] = []

    def make(**how: Any) -> Run:
        runs.append(Run(world, tmp_path / "run", **how))
        return runs[-1]

    yield make
    for run in runs:
        run.kill()
    cluster.restore()


@pytest.fixture(scope="session")
def undisturbed(world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of what the same scoring gives when nothing goes wrong."""
    run = Run(world, tmp_path_factory.mktemp("slurm") / "undisturbed")
    run.score(*BOTH)
    run.end_well()
    tables = [path for path in run.checkpoints.rglob("tier*") if path.is_file()]
    assert len(tables) == 2 * (2 + 3)  # of each step: two files of Tier2, three of Tier3
    return run.checkpoints
