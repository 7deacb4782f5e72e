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


@dataclass
class Workshop:
    """One world, a copy of it as it was, and what was where."""

    folder: Path
    copy: Path
    before: dict[str, State]

    def restore(self) -> None:
        """Puts back whatever differs; what does not stays, down to the number of its file."""
        now = states(self.folder)
        for name in sorted(set(now) - set(self.before), reverse=True):
            _remove(self.folder / name)
        for name, state in self.before.items():
            if now.get(name) != state:
                self._put_back(name, state)
        self._know_checkpoints()
        for name, state in sorted(self.before.items(), reverse=True):
            if stat.S_ISDIR(state[0]):
                os.utime(self.folder / name, ns=(state[3], state[3]))
        self.before = states(self.folder)

    def _know_checkpoints(self) -> None:
        """Files that were put back are other files of the system, which records of scores tell apart."""
        for record in self.copy.glob("results/**/.made/score.json"):
            content = json.loads(record.read_text())
            state = list(checkpoint_state(Path(content["about"]["checkpoint"])))
            if content["about"]["checkpoint_state"] != state:
                content["about"]["checkpoint_state"] = state
                record.write_text(json.dumps(content))
                name = str(record.relative_to(self.copy))
                self._put_back(name, self.before[name])

    def _put_back(self, name: str, state: State) -> None:
        path, kept = self.folder / name, self.copy / name
        if stat.S_ISDIR(state[0]):
            if path.is_symlink() or not path.is_dir():
                _remove(path)
                path.mkdir()
            path.chmod(stat.S_IMODE(state[0]))
        else:
            _remove(path)
            shutil.copy2(kept, path, follow_symlinks=False)


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
    for link in world.folder.rglob("*"):
        os.utime(link, ns=(os.lstat(link).st_mtime_ns,) * 2, follow_symlinks=False)
    shutil.copytree(world.folder, folder / "copy", symlinks=True)
    return Workshop(world.folder, folder / "copy", states(world.folder))


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
