"""A prefilled tiny world to watch, with a stand-in for Snakemake."""

import json
import shutil
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest
import yaml

from demo.nanotron_writer import import_hf
from evaluation.orchestration.processes import Process
from evaluation.settings.config import load_config
from evaluation.watching import watch
from evaluation.watching.lock import Holder, StageLock
from evaluation.watching.watch import Options, Watcher
from tests.workflow.world import World, build_prefilled

STEPS = (10, 20, 30, 40)


@dataclass(frozen=True)
class Watched:
    """A world whose first stage is watched; `whole` holds its checkpoints as they are meant to be."""

    world: World
    whole: Path
    play: Path

    @property
    def checkpoints(self) -> Path:
        return self.world.folder / "new"

    def copy(self, step: int) -> Path:
        return shutil.copytree(self.whole / str(step), self.checkpoints / str(step))

    def scored(self) -> list[str]:
        noted = self.play / "scored"
        return noted.read_text().splitlines() if noted.exists() else []

    def watcher(self, **options: object) -> Watcher:
        told = {
            "configuration": self.world.config,
            "stages": ("stage1",),
            "interval": 0.1,
            "quiet": 0.1,
            "arguments": ("--cores", "1"),
            "until_step": None,
            "give_up": None,
            "once": False,
            **options,
        }
        return Watcher(load_config(self.world.config), Options(**told))  # type: ignore[arg-type]


def held_by(results: Path, watcher: Process, snakemake: Process | None = None) -> Path:
    """A stage's lock, as such a process writes it."""
    path = StageLock(results).path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(Holder(watcher, snakemake))))
    return path


@pytest.fixture(scope="session")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Prefilled, with checkpoints of tp 2 by this project's own writer in `whole`."""
    world = build_prefilled(tmp_path_factory.mktemp("pristine"))
    write_whole(world, world.folder / "whole")
    return world


def write_whole(world: World, folder: Path) -> None:
    """One model of a world as the checkpoints of all steps."""
    for step in STEPS:
        import_hf(
            world.folder / "hf" / "1-10",
            folder,
            tp=2,
            step=step,
            sequence_length=64,
            tokenizer_name=str(world.folder / "tokenizer"),
        )


@pytest.fixture
def watched(pristine: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watched:
    """Results and new checkpoints of its own; no pages, which other tests look at."""
    world = World(tmp_path)
    content = yaml.safe_load(pristine.config.read_text())
    content["results"] = str(tmp_path / "results")
    content["stages"] = {"stage1": {**content["stages"]["stage1"], "steps": "all"}}
    content["stages"]["stage1"]["checkpoints"] = str(tmp_path / "new")
    world.config.write_text(yaml.safe_dump(content))
    found = Watched(world, pristine.folder / "whole", tmp_path / "play")
    found.play.mkdir()
    found.checkpoints.mkdir()
    monkeypatch.setenv("PLAY", str(found.play))
    monkeypatch.setenv("WHOLE", str(found.whole))
    monkeypatch.setattr(watch, "snakemake", stand_in)
    monkeypatch.setattr(watch, "make_pages", lambda *_: ())
    monkeypatch.chdir(tmp_path)
    return found


def stand_in(configuration: Path, targets: list[str], arguments: tuple[str, ...]) -> list[str]:
    fixed = ["--keep-going", "--configfile", str(configuration), *arguments]
    return [sys.executable, "-m", "tests.watching.stand_in", *targets, *fixed]
