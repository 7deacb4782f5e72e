"""The cluster, a world on it, and what an undisturbed run gives."""

import fcntl
from collections.abc import Callable, Iterator
from functools import cache
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

missing = cache(cluster.missing)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.slurm)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skips before anything is built, and at one place, so that one line of the summary says it."""
    if "running" in getattr(item, "fixturenames", ()) and missing() is not None:
        pytest.skip(f"no real Slurm to test on: {missing()}")


@pytest.fixture(scope="session")
def running() -> Iterator[None]:
    """The cluster; one that was up before is left up. Other test runs wait until this one ends."""
    with open(LOCK, "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        before = cluster.is_up()
        if not before:
            cluster.up()
        yield
        if not before:
            cluster.down()


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return build_world(tmp_path_factory.mktemp("slurm") / "world")


@pytest.fixture(scope="session")
def slow_world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """One stage of eight slices, prefilled: a job has many moments between two stored items."""
    world = build_world(tmp_path_factory.mktemp("slurm") / "slow")
    # Of other lengths, as one that is stored under another name is not scored again.
    slices = {f"text{n}": {"dataset": "made/text", "tokens": 1280 - 64 * n} for n in range(SLICES)}
    suite = world.folder / "suites/many.yaml"
    suite.write_text(yaml.safe_dump({"extends": "base", "slices": slices}))
    world.change(stages={"stage1": {**world.stages["stage1"], "suites": ["many"]}})
    well(world.evaluation("prefill"))
    return world


MakeRun = Callable[..., Run]


@pytest.fixture
def make_run(running: None, slow_world: World, tmp_path: Path) -> Iterator[MakeRun]:
    """Makes runs on a cluster whose nodes are idle; at the end all of them and all jobs are ended."""
    cluster.restore()
    runs: list[Run] = []

    def make(world: World = slow_world, **how: Any) -> Run:
        runs.append(Run(world, tmp_path / "run", **how))
        return runs[-1]

    yield make
    for run in runs:
        run.kill()
    cluster.restore()


@pytest.fixture(scope="session")
def undisturbed(running: None, slow_world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of what the same scoring gives when nothing goes wrong."""
    run = Run(slow_world, tmp_path_factory.mktemp("slurm") / "undisturbed")
    run.score(*BOTH)
    run.end_well()
    tables = [path for path in run.checkpoints.rglob("tier*") if path.is_file()]
    assert len(tables) == 2 * (2 + 3)  # of each step: two files of Tier2, three of Tier3
    return run.checkpoints
