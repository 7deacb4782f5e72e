"""Two stages with results; a small real run; a browser."""

import shutil
import signal
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from evaluation.__main__ import main
from evaluation.settings.plan import StagePlan
from tests.bridge.folders import make_plans
from tests.reporting.browser import launched, missing
from tests.reporting.pages import STEPS, write_pages, write_results
from tests.workflow.world import World, build_world


@pytest.fixture(scope="session")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both stages scored, the second one compared with its bridge; to be read, not changed."""
    root = tmp_path_factory.mktemp("scored")
    write_results(root)
    return root


@pytest.fixture
def plans(scored: Path, tmp_path: Path) -> dict[str, StagePlan]:
    """The stages of a copy, to change."""
    shutil.copytree(scored, tmp_path, dirs_exist_ok=True)
    return make_plans(tmp_path)


@pytest.fixture(scope="session")
def reported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, StagePlan]:
    """The same stages with tables, figures and all pages; to be read, not changed."""
    return write_pages(tmp_path_factory.mktemp("reported"), steps=STEPS)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Closed with its module: Playwright's event loop runs as long, and others must start theirs."""
    why = missing()
    if why is not None:
        pytest.skip(why)
    with launched(tmp_path_factory.mktemp("browser")) as browser:
        yield browser


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results whose pages are written up, to be read."""
    plans = write_pages(tmp_path_factory.mktemp("reading"))
    return plans["first"].results.parent


def command(*arguments: str, config: Path) -> None:
    """Runs a command of the package in this process, which has imported all it needs."""
    handler = signal.getsignal(signal.SIGTERM)
    assert main([*arguments, "--config", str(config)]) == 0
    signal.signal(signal.SIGTERM, handler)


@pytest.fixture(scope="session")
def tiny_world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Both stages of the tiny ladder, scored, compared and written up."""
    world = build_world(tmp_path_factory.mktemp("report") / "world")
    command("prefill", config=world.config)
    for step in (10, 20):
        command("score", "--stage", "stage1", "--step", str(step), config=world.config)
    command("score", "--stage", "stage2", "--bridge", config=world.config)
    for step in (5, 15):
        command("score", "--stage", "stage2", "--step", str(step), config=world.config)
    write_up(["stage1", "stage2"], world.config)
    return world


@pytest.fixture(scope="session")
def tiny(tiny_world: World) -> Path:
    return tiny_world.results()


def write_up(stages: Iterable[str], config: Path) -> None:
    del stages
    command("report", config=config)
