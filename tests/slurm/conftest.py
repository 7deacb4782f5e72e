"""The cluster, a world on it, and what an undisturbed run gives."""

import fcntl
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.slurm import cluster, layout
from tests.slurm.runs import BOTH, PROMPT_SNAKEMAKE, Run, make_scoring_slow
from tests.workflow.world import World, build_world

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
    with open(layout.LOCK, "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        before = cluster.is_up()
        if not before:
            cluster.up()
        yield
        if not before:
            cluster.down()


@pytest.fixture
def slurm(running: None) -> Iterator[None]:
    """The cluster with all nodes idle; afterwards every job is cancelled and every node back."""
    cluster.restore()
    yield
    cluster.restore()


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return build_world(tmp_path_factory.mktemp("slurm") / "world")


@pytest.fixture(scope="session")
def slow_world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """One stage of many items, already prefilled."""
    world = build_world(tmp_path_factory.mktemp("slurm") / "slow")
    make_scoring_slow(world)
    return world


MakeRun = Callable[..., Run]


@pytest.fixture
def make_run(slurm: None, slow_world: World, tmp_path: Path) -> Iterator[MakeRun]:
    """Makes runs; those still running at the end of the test are killed with their jobs."""
    runs: list[Run] = []

    def make(
        name: str = "run",
        results: Path | None = None,
        settings: dict[str, Any] | None = None,
        profile: dict[str, str] | None = None,
        program: str = PROMPT_SNAKEMAKE,
    ) -> Run:
        folder = tmp_path / name
        results = results or folder / "results"
        runs.append(Run(slow_world, folder, results, settings or {}, profile or {}, program))
        return runs[-1]

    yield make
    for run in runs:
        if run.process is not None and run.process.poll() is None:
            run.kill()


@pytest.fixture(scope="session")
def undisturbed(running: None, slow_world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of what the same scoring gives when nothing goes wrong."""
    folder = tmp_path_factory.mktemp("slurm") / "undisturbed"
    run = Run(slow_world, folder, folder / "results", program=PROMPT_SNAKEMAKE)
    run.score(steps=BOTH)
    assert run.wait() == 0, run.log
    tables = [
        path for path in run.checkpoints().rglob("*.*") if path.suffix in (".json", ".parquet")
    ]
    results = [path for path in tables if path.parent.name != ".made"]
    assert len(results) == 2 * (2 + 3)  # of each step: two files of Tier2, three of Tier3
    return run.checkpoints()
