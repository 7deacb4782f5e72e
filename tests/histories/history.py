"""A history: edits, accidents and runs in their order, played and judged.

An action is a list: an edit or accident by its name with its arguments, `run TARGET`, a run that
is cut short (`killed MOMENT`, `stopped MOMENT`), or another command of `commands` with its arguments.
`repaired` takes back what cannot be fulfilled.
Fixed histories also have `run_leaves FOLDER …`, a run that changes no file there, and `told …`, which
puts arguments on all command lines from there on.
"""

import json
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.histories.accidents import ACCIDENTS, LOSES_CACHES, LOSES_RESULTS, LOSES_SCORES, ROOTS
from tests.histories.commands import COMMANDS
from tests.histories.economy import Economy
from tests.histories.edits import ASKS_NOTHING, EDITS
from tests.histories.edits_of_settings import is_told
from tests.histories.model import Model
from tests.histories.oracle import differences, kept, scored_steps, snapshot
from tests.histories.runner import PATIENCE, Done, Server
from tests.histories.world import World, environment

Action = list[Any]

RUNS = ("run", "killed", "stopped")
MADE = (*ROOTS, "cache", ".snakemake")


def is_change(action: Action) -> bool:
    return action[0] not in ("run", "repaired", "run_leaves", "told")


@dataclass
class Report:
    """What was found wrong, and what was done until then."""

    failures: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
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
        self.world.folder.mkdir(parents=True)
        self.world.write(None, self.model)
        self.economy = Economy(self.world.folder)

    def play(self, actions: Iterable[Action]) -> Report:
        for action in actions:
            self.act(action)
        self.tell("run all, at the end")
        done = self.run("all")
        if self._is_refused(done) or self.model.doubtful():
            self.act(["repaired"])
            self.tell("run all, at the end")
            done = self.run("all")
        self._again(done)
        self._compare(done)
        economy, report = self.economy, self.report
        report.asked, report.in_vain = economy.asked, economy.in_vain
        report.of_copies = economy.of_copies
        return report

    def act(self, action: Action) -> None:
        name, *arguments = action
        self.tell(" ".join(str(part) for part in action))
        if name == "run":
            self.run(arguments[0])
        elif name == "run_leaves":
            self._run_leaves(arguments)
        elif name == "told":
            self.arguments = arguments
        elif name in RUNS:
            self._cut_short(name, int(arguments[0]))
        elif name in COMMANDS:
            COMMANDS[name].play(self, *arguments)
        elif name in ACCIDENTS:
            met = ACCIDENTS[name][1](self.world.folder, *arguments)
            self.report.told[-1] += f" ({met})"
            self.since.append(name)
            if name in LOSES_RESULTS:
                self.held.clear()
            if name in LOSES_SCORES:
                self.economy.forget_scores()
            if name in LOSES_CACHES:
                self.economy.forget_caches()
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
        """Whether a run has nothing to complain about, and nothing is gone."""
        model = self.model
        limits = model.may_fail_to_verify() or "runs" in model.config
        return not (model.impossible() or model.broken() or model.gone or limits)

    def tell(self, what: str) -> None:
        self.report.told.append(what)

    def wrong(self, what: str) -> None:
        self.report.failures.append(what)
        self.report.told.append(f"    ✗ {what}")
        said = self.world.folder / "said.log"
        self.report.output += [said.read_text()] if said.exists() else []

    def snakemake(self, *arguments: str, **extra: str) -> Done:
        told = {**environment(self.world, self.model), **self.extra, **extra}
        given = (*arguments, *self.arguments)
        done = self.server.snakemake(self.world.folder, *given, extra=told)
        self.report.runs += 1
        if done.seconds > PATIENCE:
            self.wrong(f"it hangs: {done.said[-6000:]}")
        (self.world.folder / "said.log").write_text(done.said)
        return done

    def run(self, target: str, *more: str) -> Done:
        arguments = [*([] if target == "all" else [target]), *more]
        before = snapshot(self.world.folder)
        self.economy.before()
        done = self.snakemake(*arguments)
        self.spent(self.economy.after(self.model, is_cut=False, is_forced=bool(more)))
        self._judge(target if not more else "", done, before)
        return done

    def _run_leaves(self, names: list[str]) -> None:
        before = [_times(self.world.folder / name) for name in names]
        self.run("all")
        for name, times in zip(names, before, strict=True):
            if touched := touched_files(times, _times(self.world.folder / name)):
                self.wrong(f"a run that has nothing to do in {name} changed {touched[:4]}")

    def spent(self, in_vain: Iterator[str]) -> None:
        for what in in_vain:
            self.wrong(what)

    def _judge(self, target: str, done: Done, before: dict[str, Any]) -> None:
        if "Traceback" in done.said:
            self.wrong(f"a traceback: {done.said.strip().splitlines()[-1][:300]}")
        if target != "all":
            return
        lost = self.model.impossible()
        if self._is_refused(done):
            touched = touched_files(before, snapshot(self.world.folder))
            if touched:
                self.wrong(f"touched by a run that is refused: {', '.join(touched[:4])}")
        elif lost.keys() - self.model.gone.keys():
            self.wrong(f"not refused, with {lost}: {done.code}, {tail(done)}")
        else:
            self._judge_end(done)

    def _judge_end(self, done: Done) -> None:
        """Of a run that does what can be done; what is gone stays scored."""
        broken = self.model.broken()
        named = {place for place in broken if self.model.is_named(place, done.said)}
        if self.model.doubtful() or broken - self.model.quiet():
            self._expect(done, 1, "a broken checkpoint")
            if not named:
                self.wrong(f"none of {sorted(broken)} is named: {tail(done)}")
        else:
            code = int(bool(named) or is_told(done.said))
            if not (self.model.may_fail_to_verify() and done.code == 1):
                self._expect(done, code, "nothing to complain about")
        now = scored_steps(self.model, self.world.folder)
        for stage, step in sorted(self.held - now):
            self.wrong(f"dropped: step {step} of {stage}, which nothing had taken away")
        if done.code == 0:
            self.held, self.since = now, []

    def _is_refused(self, done: Done) -> bool:
        """One sentence names a key that asks for what is not there."""
        keys = {key for key, place in self.model.used() if place not in self.model.checkpoints}
        return done.code == 1 and any(key in done.said for key in keys)

    def _expect(self, done: Done, code: int, why: str) -> None:
        if done.code != code:
            self.wrong(f"exit code {done.code}, with {why}: {tail(done)}")

    def _cut_short(self, how: str, moment: int) -> None:
        kind = "KILL" if how == "killed" else "TERM"
        self.economy.before()
        done = self.snakemake(HISTORIES_ACCIDENT=f"{kind} {moment}")
        self.report.told[-1] += f" (exit code {done.code})"
        self.spent(self.economy.after(self.model, is_cut=True))
        if how == "killed":
            unlocked = self.snakemake("--unlock")
            if unlocked.code:
                self.wrong(f"--unlock ended with {unlocked.code}: {tail(unlocked)}")

    def _again(self, first: Done) -> None:
        """The same target once more finds nothing to do."""
        before = snapshot(self.world.folder)
        self.economy.before()
        done = self.snakemake()
        self.spent(self.economy.after(self.model, is_cut=False))
        if self.economy.scored():
            self.wrong(f"run again, {self.economy.scored()} items were scored")
        self._expect(done, first.code, "what it had before")
        if done.code == 0 and "Nothing to be done" not in done.said:
            self.wrong(f"run again, there was something to do: {tail(done)}")
        if done.code == 0 and (touched := touched_files(before, snapshot(self.world.folder))):
            self.wrong(f"run again, {', '.join(touched[:4])} changed")

    def _compare(self, first: Done) -> None:
        """Beside a run in the same folder, from nothing.

        What is gone but was scored, or lost a file unnoticed, is put back for that, and taken away
        again once it is scored: so both have it marked as gone.
        """
        if self.model.impossible().keys() - self.model.gone.keys():
            return  # it should have been refused
        quiet = self.model.quiet()
        unseen = {place for place in quiet if not self.model.is_named(place, first.said)}
        gone = self.model.impossible().keys() | kept(self.model, self.world.folder)
        whole = self.model.restored(unseen | gone)
        folder = self.world.folder
        ours, fresh = folder / ".ours", folder / ".fresh"
        _move(folder, ours)
        self.world.write(self.model, whole)
        done = self.snakemake()
        self.world.write(whole, self.model)
        if gone:
            self.snakemake()
        _move(folder, fresh)
        _move(ours, folder)
        code = int(bool(whole.broken()) or is_told(done.said))
        if whole.may_fail_to_verify():
            code = first.code
        self._expect(done, code, "a fresh run")
        for what in differences(whole, folder, fresh):
            self.wrong(what)


def _move(source: Path, target: Path) -> None:
    target.mkdir(exist_ok=True)
    for name in MADE:
        if (source / name).exists():
            shutil.move(source / name, target / name)


def _times(folder: Path) -> dict[str, Any]:
    """Of all files, logs included: a job that ran has left one."""
    return {str(p.relative_to(folder)): p.stat().st_mtime_ns for p in folder.rglob("*.*")}


def touched_files(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    names = before.keys() | after.keys()
    return sorted(name for name in names if before.get(name) != after.get(name))


def tail(done: Done) -> str:
    lines = [line.strip() for line in done.said.splitlines() if line.strip()]
    errors = [line for line in lines if "rror" in line and "log" not in line]
    return " | ".join((errors or lines)[-2:])[:400]


def read(path: Path) -> list[Action]:
    actions: list[Action] = json.loads(path.read_text())
    return actions
