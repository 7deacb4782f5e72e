"""What a user types but for a plain run: forced runs, what only looks, two at once."""

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.histories.model import Model
from tests.histories.oracle import snapshot, touched

if TYPE_CHECKING:
    from tests.histories.history import Player


@dataclass(frozen=True)
class Command:
    """The arguments that it could be given, and how it is played."""

    choices: Callable[[Model], Iterable[tuple[Any, ...]]]
    play: Callable[..., None]


COMMANDS: dict[str, Command] = {}


def command(choices: Callable[[Model], Iterable[tuple[Any, ...]]]) -> Any:
    def register(play: Callable[..., None]) -> Callable[..., None]:
        COMMANDS[play.__name__] = Command(choices, play)
        return play

    return register


def _forcings(model: Model) -> Iterator[tuple[Any, ...]]:
    yield from [("--forceall",), ("--rerun-triggers", "mtime", "params", "input", "code")]
    yield from [("--forcerun", "score"), ("--forcerun", "collect")]


@command(_forcings)
def forced(player: "Player", *arguments: str) -> None:
    """How it ends is free; it may not ask anything again, nor take away what is gone."""
    player.run("all", *arguments)


@command(lambda model: [("status",), ("doctor",), ("--dry-run",), ("--lint",)])
def looked(player: "Player", *words: str) -> None:
    """What only looks changes nothing."""
    before = snapshot(player.folder)
    is_run = words[0].startswith("--")
    done = player.snakemake(*words) if is_run else player.evaluation(*words)
    if found := touched(before, snapshot(player.folder)):
        player.wrong(f"{' '.join(words)} changed {found[0]}")
    if is_run:
        player.check_traceback(done)


@command(lambda model: [()])
def twice(player: "Player") -> None:
    """Two Snakemakes in two folders, on one folder of results: one ends well, the other is refused."""
    folder = player.folder
    (folder / "beside").mkdir(exist_ok=True)
    about = {"config": str(folder / "config.yaml"), "extra": player.environment()}
    player.run("prefill", why="for both")
    with player.forgiven(), ThreadPoolExecutor(2) as both:
        places = (folder, folder / "beside")
        ended = list(both.map(lambda place: player.server.snakemake(place, **about), places))
    player.report.runs += 2
    player.since.append("twice")
    for done in ended:
        player.check_traceback(done)
        if done.code and player.is_well() and "another run" not in done.said:
            player.wrong(f"one of two at once ended with {done.code}: {done.said[-600:]}")
            player.report.output.append(done.said)
    if all(done.code for done in ended) and player.is_well():
        player.wrong("both of two at once were refused")


@command(lambda model: [])
def meanwhile(player: "Player", kind: str, moment: int, action: list[Any]) -> None:
    """An edit in the middle of a run: before a file is renamed (WAIT), or while data are read."""
    folder, before = player.folder, player.model.copy()
    with player.forgiven(before), ThreadPoolExecutor(1) as beside:
        running = beside.submit(player.snakemake, HISTORIES_ACCIDENT=f"{kind} {moment}")
        while not (running.done() or (folder / "waiting").exists()):
            time.sleep(0.01)
        is_late = running.done()
        player.edit(action)
        (folder / "go").touch()
        done = running.result()
    for name in ("waiting", "go"):
        (folder / name).unlink(missing_ok=True)
    player.report.lines[-1] += f" (exit code {done.code}{', after it' * is_late})"
    player.check_traceback(done)
