"""The world that all cases change, put back after each of them."""

import json
import os
import shutil
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.checkpoints.state import checkpoint_state
from tests.bad_input import changes
from tests.histories.runner import Server
from tests.workflow.world import ANSWERED, FIRST_LETTER, LAST_LETTER, build_world

State = tuple[int, int, int, int, str]
"""Mode, size, number of the file, time, and target of a link."""


@dataclass(frozen=True)
class Workshop:
    """One world, and a copy of it as it was."""

    folder: Path
    copy: Path

    def restore(self) -> None:
        """Puts the world back; records of scores, which know files by their numbers, are told the new ones."""
        for path in self.folder.iterdir():
            _remove(path)
        shutil.copytree(self.copy, self.folder, symlinks=True, dirs_exist_ok=True)
        for record in self.folder.glob("results/**/.made/score.json"):
            content = json.loads(record.read_text())
            state = checkpoint_state(Path(content["about"]["checkpoint"]))
            content["about"]["checkpoint_state"] = list(state)
            record.write_text(json.dumps(content))


def states(folder: Path) -> dict[str, State]:
    """What is below a folder, folders before what they hold."""
    found: dict[str, State] = {}
    for place, folders, files in os.walk(folder):
        for path in (os.path.join(place, name) for name in sorted([*folders, *files])):
            state = os.lstat(path)
            link = os.readlink(path) if stat.S_ISLNK(state.st_mode) else ""
            file = (state.st_size, state.st_ino) if stat.S_ISREG(state.st_mode) else (0, 0)
            found[os.path.relpath(path, folder)] = (state.st_mode, *file, state.st_mtime_ns, link)
    return found


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif path.exists() or path.is_symlink():
        path.unlink()


def build(folder: Path, server: Server) -> Workshop:
    """The tiny world with a generation task, run to its end once."""
    folder.mkdir(parents=True)
    world = build_world(folder / "world")
    world.change_suite("sft", generation_tasks={"letters": LETTERS})
    world.change(verification={"workers": 1})
    for name in ("tmp", "home"):
        (world.folder / name).mkdir()
    done = server.snakemake(world.folder, "--quiet", extra=variables(world.folder))
    if done.code != 0:
        raise RuntimeError(f"the untouched world does not run: {done.said}")
    _remove(world.folder / "tmp")  # a fork of the warm server does not tidy up as it exits
    (world.folder / "tmp").mkdir()
    shutil.copytree(world.folder, folder / "copy", symlinks=True)
    return Workshop(world.folder, folder / "copy")


LETTERS: dict[str, Any] = {
    **ANSWERED,
    "limit": 4,
    "max_new_tokens": 4,
    "sampling": {"temperature": 1.0, "n": 2},
    "verifiers": {"first": FIRST_LETTER, "last": LAST_LETTER},
}


def variables(folder: Path) -> dict[str, str]:
    """The environment of a command."""
    return {
        "EVALUATION_CONFIG": str(folder / "config.yaml"),
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "tmp"),
        "TERM": "dumb",
        "COLUMNS": "100",
    }


def change(folder: Path, lines: tuple[str, ...]) -> None:
    """Does what a case says, in the world's folder."""
    here = Path.cwd()
    os.chdir(folder)
    try:
        for line in lines:
            if line.startswith("$ "):
                subprocess.run(["bash", "-ec", "shopt -s globstar; " + line[2:]], check=True)
            else:
                eval(line, dict(changes.FUNCTIONS))
    finally:
        os.chdir(here)
