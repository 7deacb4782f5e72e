"""The cluster, a world on it, and what an undisturbed run gives."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.slurm import cluster
from tests.slurm.runs import Run, make_scoring_slow
from tests.workflow.world import World, build_world


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.slurm)


@pytest.fixture(scope="session")
def running() -> Iterator[None]:
    """The cluster; one that was up before is left up."""
    why = cluster.missing()
    if why is not None:
        pytest.skip(why)
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
    ) -> Run:
        folder = tmp_path / name
        results = results or folder / "results"
        runs.append(Run(slow_world, folder, results, settings or {}, profile or {}))
        return runs[-1]

    yield make
    for run in runs:
        if run.process is not None and run.process.poll() is None:
            run.kill()


@pytest.fixture(scope="session")
def undisturbed(
    running: None, slow_world: World, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """What the same scoring gives when nothing goes wrong."""
    folder = tmp_path_factory.mktemp("slurm") / "undisturbed"
    run = Run(slow_world, folder, folder / "results")
    run.score()
    assert run.wait() == 0, run.log
    outcome = run.outcome()
    assert len(outcome) == 8  # two steps of two tiers, a JSON file and a table each
    return outcome
