"""Another user on the same folders, with the modes that a umask gives; only root can play that."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.histories.oracle import differences_of, snapshot, touched
from tests.histories.runner import Done

if TYPE_CHECKING:
    from tests.histories.history import Player

OWNER, OTHER, GROUP = 40_001, 40_002, 40_000
SHARED, READABLE, PRIVATE = "002", "022", "077"
UMASKS = (SHARED, READABLE, PRIVATE)


def play_other_user(player: "Player", umask: str) -> None:
    """Of the same group: in the same folder if both may write there, otherwise with own results.

    A cache that both can read is used as it is; what cannot be read is told in a sentence.
    """
    has_own = any("results" in stage for stage in player.model.stages.values())
    if why_not_played() or has_own or not player.is_well():
        return
    player.run("all", why="for another user")
    with _given(player.folder, umask):
        if umask == SHARED:
            _together(player)
        else:
            _beside(player, umask)


def why_not_played() -> str | None:
    """Why this machine cannot play another user: root's home may hold the Python, unreadable for others."""
    if os.getuid() != 0:
        return "only root can play another user"
    closed = [path for path in Path(sys.base_prefix).parents if not path.stat().st_mode & 0o001]
    return f"another user cannot read Python in {closed[0]}" if closed else None


def _together(player: "Player") -> None:
    """Both take turns: nothing is left to do, and what one begins the other can do."""
    shutil.rmtree(player.folder / player.model.results(next(iter(player.model.stages))))
    for user in (OTHER, OWNER):
        player.extra |= _variables(user, SHARED, player.folder)
        player.run("all", why=f"by user {user}")
    for name in _variables(OTHER, SHARED, player.folder):
        del player.extra[name]


def _beside(player: "Player", umask: str) -> None:
    """With results of its own, in a folder of its own."""
    beside = player.folder.with_name(f"beside_{player.folder.name}")
    ours = player.folder / str(player.model.config["results"]).rpartition("/")[2]
    beside.mkdir()
    config = shutil.copy(player.folder / "config.yaml", beside)
    for path in (beside, config):
        os.chown(path, OTHER, GROUP)
    before = snapshot(player.folder)
    own = {**player.environment(), **_variables(OTHER, umask, beside)}
    own["HISTORIES_COUNTS"] = str(beside / "counts.jsonl")
    settings = f"results={beside}/results"
    with player.forgiven():
        done = player.server.snakemake(beside, "--config", settings, config=str(config), extra=own)
    player.report.runs += 1
    player.check_traceback(done)
    if found := touched(before, snapshot(player.folder)):
        player.wrong(f"another user changed {found[:4]}")
    if umask == PRIVATE:
        _check_told(player, done)
    elif done.code:
        player.wrong(f"another user's run ended with {done.code}: {done.said[-600:]}")
    else:
        for what in differences_of(beside / "results", ours):
            if ".html: " not in what:  # pages have the folder of results on them
                player.wrong(f"another user's results: {what}")
    shutil.rmtree(beside)


def _check_told(player: "Player", done: Done) -> None:
    if done.code != 1 or "ermission denied" not in done.said:
        player.wrong(f"what may not be read is not told: {done.code}: {done.said[-600:]}")


def _variables(user: int, umask: str, home: Path) -> dict[str, str]:
    """What the server needs to be another user, who has a home to write to."""
    return {
        "HISTORIES_USER": f"{user} {GROUP} {umask}",
        "HOME": str(home),
        "LOGNAME": f"user{user}",
    }


@contextmanager
def _given(folder: Path, umask: str) -> Iterator[None]:
    """Give a folder to its owner as if made with that umask; take it back at the end."""
    parents = [path for path in folder.parents if path.stat().st_mode & 0o011 != 0o011]
    for path in parents:
        path.chmod(path.stat().st_mode | 0o011)
    _give(folder, OWNER, GROUP, int(umask, 8))
    try:
        yield
    finally:
        _give(folder, 0, 0, 0o022)


def _give(folder: Path, user: int, group: int, umask: int) -> None:
    for path in (folder, *folder.rglob("*")):
        os.chown(path, user, group, follow_symlinks=False)
        if path.is_dir() and not path.is_symlink():
            path.chmod((0o777 & ~umask) | 0o2000)
        elif not path.is_symlink():
            path.chmod((0o777 if os.access(path, os.X_OK) else 0o666) & ~umask)
