"""What a user types but for a plain run: forced runs, single commands, a watcher, two at once."""

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.histories.model import Model
from tests.histories.oracle import contents, snapshot, touched
from tests.histories.users import UMASKS, play_other_user

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
    yield from [("--forceall",), ("--force",), ("--rerun-triggers", "mtime")]
    for stage in model.stages:
        yield "--forcerun", f"score_{stage}"
        yield "-R", f"score_{stage}"
        if model.bridge(stage) is not None:
            yield "--forcerun", f"score_{stage}_bridge"


@command(_forcings)
def forced(player: "Player", *arguments: str) -> None:
    """How it ends is free; it may not ask anything again, nor take away what is gone."""
    player.run("all", *arguments)


@command(lambda model: [()])
def marked_as_made(player: "Player") -> None:
    """`snakemake --touch`."""
    player.run("all", "--touch")


@command(lambda model: [("status",), ("doctor",), ("bridge-table",), ("--dry-run",)])
def looked(player: "Player", *words: str) -> None:
    """What only looks changes nothing."""
    before = snapshot(player.folder)
    is_run = words[0].startswith("--")
    done = player.snakemake(*words) if is_run else player.evaluation(*words)
    if found := touched(before, snapshot(player.folder)):
        player.wrong(f"{' '.join(words)} changed {found[0]}")
    if is_run:
        player.check_traceback(done)


def _by_hand(model: Model) -> Iterator[tuple[Any, ...]]:
    yield from [("prefill",), ("report",)]
    for stage in model.stages:
        yield "report", "--stage", stage
        yield "prefill", "--stage", stage
        for step in model.steps(stage)[-1:]:
            which = ("--stage", stage, "--step", str(step))
            yield from [("collect", *which), ("score", *which)]
        if model.bridge(stage) is not None:
            yield from [(name, "--stage", stage, "--bridge") for name in ("collect", "score")]


SETS = (
    "step",
    "bridge",
    "stage",
    "checkpoint",
    "link",
    "result",
    "store",
    "cache",
    "suites",
)
"""Beginnings of what changes the set of results: tables of those that are there are in order."""


@command(_by_hand)
def by_hand(player: "Player", *words: str) -> None:
    """It refuses, or what it writes is what a run gives right after it."""
    before, since = contents(player.folder, player.model), list(player.since)
    player.economy.before()
    done = player.evaluation(*words)
    for what in player.economy.after(player.model, is_cut=done.code != 0):
        player.wrong(what)
    player.since.append("by_hand")
    if done.code or not before or any(name.startswith(SETS) for name in since):
        return  # or nothing was scored before, as tables say
    made = contents(player.folder, player.model)
    written = [name for name in made if made[name] != before.get(name)]
    player.check_run_gives(made, written, f"by hand: {words[0]} wrote")


@command(lambda model: [()])
def twice(player: "Player") -> None:
    """Two Snakemakes in two folders, on one folder of results: both end well, and may do the same."""
    folder = player.folder
    (folder / "beside").mkdir(exist_ok=True)
    about = {"config": str(folder / "config.yaml"), "extra": player.environment()}
    with player.forgiven(), ThreadPoolExecutor(2) as both:
        places = (folder, folder / "beside")
        ended = list(both.map(lambda place: player.server.snakemake(place, **about), places))
    player.report.runs += 2
    player.since.append("twice")
    for done in ended:
        player.check_traceback(done)
        if done.code and player.is_well():
            player.wrong(f"one of two at once ended with {done.code}: {done.said[-600:]}")
            player.report.output.append(done.said)


@command(lambda model: [(umask,) for umask in UMASKS])
def other_user(player: "Player", umask: str) -> None:
    """Somebody else works with these folders, as far as their modes let him."""
    play_other_user(player, umask)


LOOKS_AT_MOST = 20
WATCHED = [("KILL", 0), *((who, n) for who in ("KILL", "MAIN") for n in (1, 4, 9, 15, 22, 30))]
WATCH = "watch --once --quiet 0 -- --cores 2 --latency-wait 0".split()


@command(lambda model: WATCHED)
def watched(player: "Player", who: str, moment: int) -> None:
    """A watcher, killed at a moment (0: not) and started again, leaves what a run gives.

    Its Snakemake lives on (MAIN), or is killed, too, as far as it had a part in that moment (KILL).
    """
    if not player.is_well():
        return
    player.run("prefill", why="for the watcher")
    if moment:
        with player.forgiven():
            player.evaluation(*WATCH, HISTORIES_ACCIDENT=f"{who} {moment}")
    # A job of the killed one may live on, next to its successor.
    with player.forgiven() if moment else player.counted():
        done = player.evaluation(*WATCH)
        for _ in range(LOOKS_AT_MOST):  # as cron does, until what the killed one began has ended
            if "still runs" in done.said or "another Snakemake is working" in done.said:
                time.sleep(1)
                done = player.evaluation(*WATCH)
    if done.code and not player.model.may_fail_to_verify(done.said):
        player.wrong(f"a watcher ended with {done.code}: {done.said[-600:]}")
        return
    made = contents(player.folder, player.model)
    player.check_run_gives(made, made, "watched: it left")


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
