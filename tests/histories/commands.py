"""What a user types but for a plain run: forced runs, single commands, a watcher, two at once."""

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.histories.model import Model
from tests.histories.oracle import changed, contents, snapshot
from tests.histories.runner import Done
from tests.histories.world import environment

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


LOOKS = (("status",), ("doctor",), ("bridge-table",), ("--dry-run",))


@command(lambda model: LOOKS)
def looked(player: "Player", *words: str) -> None:
    """What only looks changes nothing."""
    before = snapshot(player.world.folder)
    is_run = words[0].startswith("--")
    done = player.snakemake(*words) if is_run else evaluation(player, *words)
    if touched := sorted(before.items() ^ snapshot(player.world.folder).items()):
        player.wrong(f"{' '.join(words)} changed {touched[0][0]}")
    _without_traceback(player, done)


def evaluation(player: "Player", *words: str, **extra: str) -> Done:
    """A command of the command line."""
    folder = player.world.folder
    told = {**environment(player.world, player.model), **player.extra, **extra}
    told["EVALUATION_CONFIG"] = str(folder / "config.yaml")
    player.report.runs += 1
    done = player.server.run(folder, ["-m", "evaluation", *words], told)
    (folder / "said.log").write_text(done.said)
    return done


def _without_traceback(player: "Player", done: Done) -> None:
    if "Traceback" in done.said:
        player.wrong(f"a traceback: {done.said.strip().splitlines()[-1][:300]}")


def _by_hand(model: Model) -> Iterator[tuple[Any, ...]]:
    yield from [("prefill",), ("front-page",)]
    for stage in model.stages:
        yield from [("tables", "--stage", stage), ("figures", "--stage", stage)]
        yield "prefill", "--stage", stage
        for step in model.steps(stage)[-1:]:
            which = ("--stage", stage, "--step", str(step))
            yield from [("collect", *which), ("score", *which)]
            if model.bridge(stage) is not None:
                yield ("deltas", *which)
        if model.bridge(stage) is not None:
            yield from [(name, "--stage", stage, "--bridge") for name in ("collect", "score")]


SETS = ("step", "bridge", "stage", "checkpoint", "link", "result", "store", "cache", "suites")
"""Beginnings of what changes the set of results: tables of those that are there are in order."""


@command(_by_hand)
def by_hand(player: "Player", *words: str) -> None:
    """It refuses, or what it writes is what a run gives right after it."""
    folder, model = player.world.folder, player.model
    before, since = contents(folder, model), list(player.since)
    player.economy.before()
    done = evaluation(player, *words)
    player.spent(player.economy.after(model, is_cut=done.code != 0))
    _without_traceback(player, done)
    player.since.append("by_hand")
    if done.code or any(name.startswith(SETS) for name in since):
        return
    made = contents(folder, model)
    written = [name for name in made if made[name] != before.get(name)]
    player.tell("run all, after it")
    if player.run("all").code == 0:
        for what in changed(made, folder, sorted(written)):
            player.wrong(f"by hand: {words[0]} wrote what a run does not give: {what}")


@command(lambda model: [()])
def twice(player: "Player") -> None:
    """Two Snakemakes in two folders, on one folder of results: both end well, and may do the same."""
    folder = player.world.folder
    (folder / "beside").mkdir(exist_ok=True)
    told = {**environment(player.world, player.model), **player.extra}
    config = str(folder / "config.yaml")

    def begin(name: str) -> Done:
        return player.server.snakemake(folder / name, config=config, extra=told)

    player.economy.before()
    with ThreadPoolExecutor(2) as both:
        ended = list(both.map(begin, ("", "beside")))
    player.report.runs += 2
    player.economy.forgive(player.model)
    player.since.append("twice")
    codes = [done.code for done in ended]
    for done in ended:
        _without_traceback(player, done)
    if any(codes) and player.is_well():
        said = next(done.said for done in ended if done.code)
        player.wrong(f"two at once ended with {codes}: {said[-600:]}")


LOOKS_AT_MOST = 20
WATCHED = [("KILL", 0), *((who, n) for who in ("KILL", "MAIN") for n in (1, 4, 9, 15, 22, 30))]


@command(lambda model: WATCHED)
def watched(player: "Player", who: str, moment: int) -> None:
    """A watcher, killed at a moment (0: not) and started again, leaves what a run gives.

    Its Snakemake lives on (MAIN), or is killed, too, as far as it had a part in that moment (KILL).
    """
    if not player.is_well():
        return
    player.tell("prefill, for the watcher")
    player.run("prefill")
    words = ["watch", "--once", "--quiet", "0", "--", "--cores", "2", "--latency-wait", "0"]
    if moment:
        player.economy.before()
        done = evaluation(player, *words, HISTORIES_ACCIDENT=f"{who} {moment}")
        player.economy.forgive(player.model)
        _without_traceback(player, done)
    player.economy.before()
    done = evaluation(player, *words)
    for _ in range(LOOKS_AT_MOST):  # as cron does, until what the killed one began has ended
        if "still runs" in done.said or "another Snakemake works" in done.said:
            time.sleep(1)
            done = evaluation(player, *words)
    if moment:  # a job of the killed one may have lived on, beside its successor
        player.economy.forgive(player.model)
    else:
        player.spent(player.economy.after(player.model, is_cut=False))
    _without_traceback(player, done)
    if done.code and not player.model.may_fail_to_verify():
        player.wrong(f"a watcher ended with {done.code}: {done.said[-600:]}")
        return
    made = contents(player.world.folder, player.model)
    player.tell("run all, after it")
    if player.run("all").code == 0:
        for what in changed(made, player.world.folder, sorted(made)):
            player.wrong(f"watched: it left what a run does not give: {what}")


@command(lambda model: [])
def meanwhile(player: "Player", kind: str, moment: int, action: list[Any]) -> None:
    """An edit in the middle of a run: before a file is renamed (WAIT), or while data are read."""
    folder = player.world.folder
    player.economy.before()
    with ThreadPoolExecutor(1) as beside:
        running = beside.submit(player.snakemake, HISTORIES_ACCIDENT=f"{kind} {moment}")
        while not (running.done() or (folder / "waiting").exists()):
            time.sleep(0.01)
        is_late = running.done()
        before = player.model.copy()
        player.edit(action)
        (folder / "go").touch()
        done = running.result()
    for name in ("waiting", "go"):
        (folder / name).unlink(missing_ok=True)
    player.report.told[-1] += f" (exit code {done.code}{', after it' * is_late})"
    player.economy.forgive(before)
    _without_traceback(player, done)
