"""A history: edits, accidents and runs in their order, played and judged.

An action is a list: an edit or accident by its name with its arguments, `run TARGET`, a run that
is cut short (`killed MOMENT`, `stopped MOMENT`), or another command of `commands` with its arguments.
`repaired` takes back what cannot be fulfilled.
Fixed histories also have `run_leaves FOLDER …`, a run that changes no file there, and `told …`, which
puts arguments on all command lines from there on.
"""

import json
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.histories.accidents import ACCIDENTS, LOSES_CACHES, LOSES_RESULTS, LOSES_SCORES, ROOTS
from tests.histories.commands import COMMANDS
from tests.histories.economy import Economy
from tests.histories.edits import ASKS_NOTHING, EDITS
from tests.histories.edits_of_settings import is_reported
from tests.histories.model import Model
from tests.histories.oracle import (
    differences,
    kept,
    scored_steps,
    snapshot,
    touched,
    unasked,
)
from tests.histories.runner import PATIENCE, Done, Server
from tests.histories.world import World, environment

Action = list[Any]


def is_change(action: Action) -> bool:
    return action[0] not in ("run", "repaired", "run_leaves", "told")


@dataclass
class Report:
    """What was found wrong, and what was done until then."""

    failures: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    output: list[str] = field(default_factory=list)
    """All that the runs printed after which something was found wrong."""
    runs: int = 0
    asked: int = 0
    in_vain: int = 0
    of_copies: int = 0


@dataclass
class Player:
    """Plays one history in a folder of its own."""

    server: Server
    world: World
    model: Model
    extra: dict[str, str] = field(default_factory=dict)
    arguments: list[str] = field(default_factory=list)
    report: Report = field(default_factory=Report)

    since: list[str] = field(default_factory=list)
    """Names of what was done since the last run of all that went well."""
    held: set[tuple[str, int]] = field(default_factory=set)
    """Stages and steps whose results nothing may take away, be their checkpoints there or not."""

    def __post_init__(self) -> None:
        self.folder = self.world.folder
        self.folder.mkdir(parents=True)
        self.world.write(None, self.model)
        self.economy = Economy(self.folder)

    def play(self, actions: Iterable[Action]) -> Report:
        for action in actions:
            self.act(action)
        done = self.run("all", why="at the end")
        if self._is_refused(done) or self.model.doubtful():
            self.act(["repaired"])
            done = self.run("all", why="at the end")
        self._again(done)
        self._compare(done)
        for name in ("asked", "in_vain", "of_copies"):
            setattr(self.report, name, getattr(self.economy, name))
        return self.report

    def act(self, action: Action) -> None:
        name, *arguments = action
        self.report.lines.append(" ".join(str(part) for part in action))
        if name == "run":
            self.run(arguments[0])
        elif name == "run_leaves":
            self._run_leaves(arguments)
        elif name == "told":
            self.arguments = arguments
        elif name in ("killed", "stopped"):
            self._cut_short("KILL" if name == "killed" else "TERM", int(arguments[0]))
        elif name in COMMANDS:
            COMMANDS[name].play(self, *arguments)
        elif name in ACCIDENTS:
            met = ACCIDENTS[name][1](self.folder, *arguments)
            self.report.lines[-1] += f" ({met})"
            self.since.append(name)
            if name in LOSES_RESULTS:
                self.held.clear()
            if name in LOSES_SCORES:
                self.economy.stored.clear()
            if name in LOSES_CACHES:
                self.economy.made.clear()
        else:
            self.edit(action)

    def edit(self, action: Action) -> None:
        name, *arguments = action
        before = self.model.copy()
        self.model.repair() if name == "repaired" else EDITS[name].change(self.model, *arguments)
        self.world.write(before, self.model)
        self.since.append(name)
        if name not in ASKS_NOTHING:
            self.held.clear()
        self.held = {(stage, step) for stage, step in self.held if self.model.asks(stage, step)}

    def is_well(self) -> bool:
        """Whether a run has nothing to complain about, and nothing was deleted."""
        model = self.model
        limits = model.limits_are_low or "runs" in model.config
        return not (model.impossible() or model.broken() or model.gone or limits)

    def wrong(self, what: str) -> None:
        self.report.failures.append(what)
        self.report.lines.append(f"    ✗ {what}")
        log = self.folder / "said.log"
        self.report.output += [log.read_text()] if log.exists() else []

    def environment(self, **extra: str) -> dict[str, str]:
        return {**environment(self.world, self.model), **self.extra, **extra}

    def snakemake(self, *arguments: str, **extra: str) -> Done:
        arguments = (*arguments, *self.arguments)
        return self._ended(
            self.server.snakemake(self.folder, *arguments, extra=self.environment(**extra))
        )

    def prefilled(self, *arguments: str, **extra: str) -> Done:
        """`snakemake prefill`, and the command after it if that ended well."""
        done = self.snakemake("prefill", **extra)
        return done if done.code else self.snakemake(*arguments, **extra)

    def evaluation(self, *words: str, **extra: str) -> Done:
        """A command of the command line."""
        told = self.environment(**extra, EVALUATION_CONFIG=str(self.folder / "config.yaml"))
        done = self._ended(self.server.run(self.folder, ["-m", "evaluation", *words], told))
        self.check_traceback(done)
        return done

    def _ended(self, done: Done) -> Done:
        self.report.runs += 1
        if done.seconds > PATIENCE:
            self.wrong(f"it hangs: {done.said[-6000:]}")
        (self.folder / "said.log").write_text(done.said)
        return done

    def check_traceback(self, done: Done) -> None:
        if "Traceback (most" in done.said:
            self.wrong(f"a traceback: {done.said.strip().splitlines()[-1][:300]}")

    @contextmanager
    def counted(self, **how: bool) -> Iterator[None]:
        """What is done within asks and prefills nothing in vain; `how` it ends, as `Economy.after` has it."""
        self.economy.before()
        yield
        for what in self.economy.after(self.model, **how):
            self.wrong(what)

    @contextmanager
    def forgiven(self, model: Model | None = None) -> Iterator[None]:
        """What is done within may do again what another did at once, or did just before it was killed."""
        self.economy.before()
        yield
        self.economy.forgive(model or self.model)

    def run(self, target: str, *more: str, why: str = "") -> Done:
        if why:
            self.report.lines.append(f"run {target}, {why}")
        with self.counted(is_forced=bool(more)):
            done = self.snakemake("prefill")
            before = snapshot(self.folder)
            if not done.code and target != "prefill":
                done = self.snakemake(*([] if target == "all" else [target]), *more)
        self.check_traceback(done)
        if target == "all" and not more:
            self._judge(done, before)
        return done

    def _run_leaves(self, names: list[str]) -> None:
        before = [snapshot(self.folder / name) for name in names]
        self.run("all")
        for name, times in zip(names, before, strict=True):
            found = touched(times, snapshot(self.folder / name))
            # A record of all that is prefilled is made anew where a suite changes; its entries are not.
            if found := [file for file in found if ".made/prefill-" not in file]:
                self.wrong(f"a run that has nothing to do in {name} changed {found[:4]}")

    def _judge(self, done: Done, before: dict[str, Any]) -> None:
        lost = self.model.impossible()
        if self._is_refused(done):
            if found := touched(before, snapshot(self.folder)):
                self.wrong(f"touched by a run that is refused: {', '.join(found[:4])}")
        elif lost.keys() - self.model.gone.keys():
            self.wrong(f"not refused, with {lost}: {done.code}, {tail(done)}")
        else:
            self._judge_end(done)

    def _judge_end(self, done: Done) -> None:
        """Of a run that does what can be done; what was deleted stays scored."""
        broken = self.model.broken()
        named = {place for place in broken if self.model.is_named(place, done.said)}
        if self.model.doubtful() or broken - self.model.quiet():
            self._expect(done, 1, "a broken checkpoint")
            if not named:
                self.wrong(f"none of {sorted(broken)} is named: {tail(done)}")
        elif not (self.model.may_fail_to_verify(done.said) and done.code == 1):
            self._expect(done, int(bool(named) or is_reported(done.said)), "no complaint")
        now = scored_steps(self.model, self.folder)
        for stage, step in sorted(self.held - now):
            self.wrong(f"dropped: step {step} of {stage}, which nothing had taken away")
        if done.code == 0:
            self.held, self.since = now, []

    def _is_refused(self, done: Done) -> bool:
        """One sentence names a key that requests what is not there."""
        keys = {key for key, place in self.model.used() if place not in self.model.checkpoints}
        return done.code == 1 and any(key in done.said for key in keys)

    def _expect(self, done: Done, code: int, why: str) -> None:
        if done.code != code:
            self.wrong(f"exit code {done.code}, with {why}: {tail(done)}")

    def _cut_short(self, how: str, moment: int) -> None:
        with self.counted(is_cut=True):
            done = self.prefilled(HISTORIES_ACCIDENT=f"{how} {moment}")
        self.report.lines[-1] += f" (exit code {done.code})"
        if how == "KILL":
            self._expect(self.snakemake("--unlock"), 0, "--unlock")

    def _again(self, first: Done) -> None:
        """The same target once more finds nothing to do."""
        before = snapshot(self.folder)
        with self.counted():
            done = self.snakemake()
        if self.economy.scored():
            self.wrong(f"run again, {self.economy.scored()} items were scored")
        self._expect(done, first.code, "what it had before")
        if found := re.findall(r"rule (?:score|collect|prefill_\w+|file):", done.said):
            self.wrong(f"run again, there was something to do: {found}")
        if done.code == 0 and (found := touched(before, snapshot(self.folder))):
            self.wrong(f"run again, {', '.join(found[:4])} changed")

    def _compare(self, first: Done) -> None:
        """With a run in the same folder, from nothing.

        What was deleted after it was scored, or lost a file unnoticed, is put back for that, and taken
        away again once it is scored: so both have it marked as deleted.
        """
        if self.model.impossible().keys() - self.model.gone.keys():
            return  # it should have been refused
        unseen = {p for p in self.model.quiet() if not self.model.is_named(p, first.said)}
        gone = self.model.impossible().keys() | kept(self.model, self.folder)
        whole = self.model.restored(unseen | gone)
        ours, fresh = self.folder / ".ours", self.folder / ".fresh"
        _move(self.folder, ours)
        self.world.write(self.model, whole)
        done = self.prefilled()
        self.world.write(whole, self.model)
        if gone:
            self.prefilled()
        _move(self.folder, fresh)
        _move(ours, self.folder)
        code = int(bool(whole.broken()) or is_reported(done.said))
        self._expect(
            done, first.code if whole.may_fail_to_verify(done.said) else code, "a fresh run"
        )
        for what in (*differences(whole, self.folder, fresh), *unasked(whole, self.folder)):
            self.wrong(what)


def _move(source: Path, target: Path) -> None:
    target.mkdir(exist_ok=True)
    for name in (*ROOTS, "cache", ".snakemake"):
        if (source / name).exists():
            shutil.move(source / name, target / name)


def tail(done: Done) -> str:
    lines = [line.strip() for line in done.said.splitlines() if line.strip()]
    errors = [line for line in lines if "rror" in line and "log" not in line]
    return " | ".join((errors or lines)[-2:])[:400]


def read(path: Path) -> list[Action]:
    actions: list[Action] = json.loads(path.read_text())
    return actions
