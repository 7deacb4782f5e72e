"""Two stages with results; a small real run; a browser."""

import signal
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from evaluation.__main__ import main
from evaluation.bridge.write import write_deltas, write_stage
from evaluation.settings.plan import StagePlan
from tests.bridge.folders import make_plans, write_side
from tests.reporting.browser import launched, missing, opened
from tests.reporting.pages import STEPS
from tests.reporting.written import write_pages
from tests.workflow.world import World, build_world


@pytest.fixture
def plans(tmp_path: Path) -> dict[str, StagePlan]:
    """Both stages scored, the second one compared with its bridge."""
    plans = make_plans(tmp_path)
    first, second = plans["first"], plans["second"]
    write_side(first.step_folder(100), first, step=100)
    write_side(second.bridge_folder, second, step=100)
    for step in STEPS:
        write_side(second.step_folder(step), second, step=step, skill=step / 20, seed=step)
        write_deltas(second, step)
    write_stage(second, STEPS)
    return plans


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Closed with its module: Playwright's event loop runs as long, and others must start theirs."""
    why = missing()
    if why is not None:
        pytest.skip(why)
    with launched(tmp_path_factory.mktemp("browser")) as browser:
        yield browser


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results whose pages are written up, to be read."""
    plans = write_pages(tmp_path_factory.mktemp("reading"), gain=0.5)
    return plans["first"].results.parent


@pytest.fixture
def stage(browser: Browser, written: Path) -> Iterator[Page]:
    """The page of the second of its stages, open."""
    with opened(browser, written / "second" / "report.html") as page:
        yield page


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
        for name in ("score", "deltas"):
            command(name, "--stage", "stage2", "--step", str(step), config=world.config)
    write_up(["stage1", "stage2"], world.config)
    return world


@pytest.fixture(scope="session")
def tiny(tiny_world: World) -> Path:
    return tiny_world.results()


def write_up(stages: Iterable[str], config: Path) -> None:
    for stage in stages:
        command("tables", "--stage", stage, config=config)
    command("front-page", config=config)
