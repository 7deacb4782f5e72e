"""A history: edits, accidents and runs in their order, played and judged.

An action is a list: an edit or accident by its name with its arguments, `run TARGET`, or a run that
is cut short (`killed MOMENT`, `stopped MOMENT`). `repaired` takes back what cannot be fulfilled.
Fixed histories also have `run_leaves FOLDER …`, a run that changes no file there, and `told …`, which
puts arguments on all command lines from there on.
"""

import json
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.histories.accidents import ACCIDENTS, ROOTS
from tests.histories.economy import Economy
from tests.histories.edits_of_runs import EDITS, is_told
from tests.histories.model import Model, World, environment
from tests.histories.oracle import differences, kept, snapshot
from tests.histories.runner import PATIENCE, Done, Server

Action = list[Any]

RUNS = ("run", "killed", "stopped")
LOSES_SCORES = ("store_hit", "store_removed", "results_removed")
LOSES_CACHES = ("cache_hit", "cache_removed", "cache_entry_removed")
MADE = (*ROOTS, "cache", ".snakemake")


def is_change(action: Action) -> bool:
    return action[0] not in ("run", "repaired", "run_leaves", "told")


@dataclass
class Report:
    """What was found wrong, and what was done until then."""

    failures: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    runs: int = 0
    seconds: float = 0.0


@dataclass
class Player:
    """Plays one history in a folder of its own."""

    server: Server
    world: World
    model: Model
    extra: dict[str, str] = field(default_factory=dict)
    arguments: list[str] = field(default_factory=list)
    report: Report = field(default_factory=Report)

    def __post_init__(self) -> None:
        self.world.folder.mkdir(parents=True)
        self.world.write(None, self.model)
        self.economy = Economy(self.world.folder)

    def play(self, actions: Iterable[Action]) -> Report:
        for action in actions:
            self._act(action)
        self._tell("run all, at the end")
        done = self._run("all")
        if self._is_refused(done) or self.model.doubtful():
            self._act(["repaired"])
            self._tell("run all, at the end")
            done = self._run("all")
        self._again(done)
        self._compare(done)
        return self.report

    def _act(self, action: Action) -> None:
        name, *arguments = action
        self._tell(" ".join(str(part) for part in action))
        if name == "run":
            self._run(arguments[0])
        elif name == "run_leaves":
            self._run_leaves(arguments)
        elif name == "told":
            self.arguments = arguments
        elif name in RUNS:
            self._cut_short(name, int(arguments[0]))
        elif name in ACCIDENTS:
            met = ACCIDENTS[name][1](self.world.folder, *arguments)
            self.report.told[-1] += f" ({met})"
            if name in LOSES_SCORES:
                self.economy.forget_scores()
            if name in LOSES_CACHES:
                self.economy.forget_caches()
        else:
            before = self.model.copy()
            self.model.repair() if name == "repaired" else EDITS[name][1](self.model, *arguments)
            self.world.write(before, self.model)

    def _tell(self, what: str) -> None:
        self.report.told.append(what)

    def _wrong(self, what: str) -> None:
        self.report.failures.append(what)
        self.report.told.append(f"    ✗ {what}")

    def _snakemake(self, *arguments: str, **extra: str) -> Done:
        told = {**environment(self.world, self.model), **self.extra, **extra}
        given = (*arguments, *self.arguments)
        done = self.server.snakemake(self.world.folder, *given, extra=told)
        self.report.runs += 1
        self.report.seconds += done.seconds
        if done.seconds > PATIENCE:
            self._wrong(f"it hangs: {done.said[-6000:]}")
        (self.world.folder / "said.log").write_text(done.said)
        return done

    def _run(self, target: str) -> Done:
        arguments = [] if target == "all" else [target]
        before = snapshot(self.world.folder)
        self.economy.before()
        done = self._snakemake(*arguments)
        self._spent(self.economy.after(self.model, is_cut=False))
        self._judge(target, done, before)
        return done

    def _run_leaves(self, names: list[str]) -> None:
        before = [_times(self.world.folder / name) for name in names]
        self._run("all")
        for name, times in zip(names, before, strict=True):
            if touched := _touched(times, _times(self.world.folder / name)):
                self._wrong(f"a run that has nothing to do in {name} changed {touched[:4]}")

    def _spent(self, in_vain: Iterator[str]) -> None:
        for what in in_vain:
            self._wrong(what)

    def _judge(self, target: str, done: Done, before: dict[str, Any]) -> None:
        if "Traceback" in done.said:
            self._wrong(f"a traceback: {done.said.strip().splitlines()[-1][:300]}")
        if target != "all":
            return
        lost = self.model.impossible()
        if self._is_refused(done):
            touched = _touched(before, snapshot(self.world.folder))
            if touched:
                self._wrong(f"touched by a run that is refused: {', '.join(touched[:4])}")
        elif lost.keys() - self.model.gone.keys():
            self._wrong(f"not refused, with {lost}: {done.code}, {_tail(done)}")
        else:
            self._judge_end(done)

    def _judge_end(self, done: Done) -> None:
        """Of a run that does what can be done; what is gone stays scored."""
        broken = self.model.broken()
        named = {place for place in broken if f"ckpts/{place}" in done.said}
        if self.model.doubtful() or broken - self.model.quiet():
            self._expect(done, 1, "a broken checkpoint")
            if not named:
                self._wrong(f"none of {sorted(broken)} is named: {_tail(done)}")
        else:
            code = int(bool(named) or is_told(done.said))
            self._expect(done, code, "nothing to complain about")

    def _is_refused(self, done: Done) -> bool:
        """One sentence names a key that asks for what is not there."""
        keys = {key for key, place in self.model.used() if place not in self.model.checkpoints}
        return done.code == 1 and any(key in done.said for key in keys)

    def _expect(self, done: Done, code: int, why: str) -> None:
        if done.code != code:
            self._wrong(f"exit code {done.code}, with {why}: {_tail(done)}")

    def _cut_short(self, how: str, moment: int) -> None:
        kind = "KILL" if how == "killed" else "TERM"
        self.economy.before()
        done = self._snakemake(HISTORIES_ACCIDENT=f"{kind} {moment}")
        self.report.told[-1] += f" (exit code {done.code})"
        self._spent(self.economy.after(self.model, is_cut=True))
        if how == "killed":
            unlocked = self._snakemake("--unlock")
            if unlocked.code:
                self._wrong(f"--unlock ended with {unlocked.code}: {_tail(unlocked)}")

    def _again(self, first: Done) -> None:
        """The same target once more finds nothing to do."""
        before = snapshot(self.world.folder)
        self.economy.before()
        done = self._snakemake()
        self._spent(self.economy.after(self.model, is_cut=False))
        if self.economy.scored():
            self._wrong(f"run again, {self.economy.scored()} items were scored")
        self._expect(done, first.code, "what it had before")
        if done.code == 0 and "Nothing to be done" not in done.said:
            self._wrong(f"run again, there was something to do: {_tail(done)}")
        if done.code == 0 and (touched := _touched(before, snapshot(self.world.folder))):
            self._wrong(f"run again, {', '.join(touched[:4])} changed")

    def _compare(self, first: Done) -> None:
        """Beside a run in the same folder, from nothing.

        What is gone but was scored, or lost a file unnoticed, is put back for that, and taken away
        again once it is scored: so both have it marked as gone.
        """
        if self.model.impossible().keys() - self.model.gone.keys():
            return  # it should have been refused
        unseen = {place for place in self.model.quiet() if f"ckpts/{place}" not in first.said}
        gone = self.model.impossible().keys() | kept(self.model, self.world.folder)
        whole = self.model.restored(unseen | gone)
        folder = self.world.folder
        ours, fresh = folder / ".ours", folder / ".fresh"
        _move(folder, ours)
        self.world.write(self.model, whole)
        done = self._snakemake()
        self.world.write(whole, self.model)
        if gone:
            self._snakemake()
        _move(folder, fresh)
        _move(ours, folder)
        code = int(bool(whole.broken()) or is_told(done.said))
        self._expect(done, code, "a fresh run")
        for what in differences(whole, folder, fresh):
            self._wrong(what)


def _move(source: Path, target: Path) -> None:
    target.mkdir(exist_ok=True)
    for name in MADE:
        if (source / name).exists():
            shutil.move(source / name, target / name)


def _times(folder: Path) -> dict[str, Any]:
    """Of all files, logs included: a job that ran has left one."""
    return {str(p.relative_to(folder)): p.stat().st_mtime_ns for p in folder.rglob("*.*")}


def _touched(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    names = before.keys() | after.keys()
    return sorted(name for name in names if before.get(name) != after.get(name))


def _tail(done: Done) -> str:
    lines = [line.strip() for line in done.said.splitlines() if line.strip()]
    errors = [line for line in lines if "rror" in line and "log" not in line]
    return " | ".join((errors or lines)[-2:])[:400]


def read(path: Path) -> list[Action]:
    actions: list[Action] = json.loads(path.read_text())
    return actions
