"""A history: edits, accidents and runs in their order, played and judged.

An action is a list: an edit or accident by its name with its arguments, `run TARGET`, a run that is cut
short (`killed MOMENT KILL`, or `TERM`), or another of `COMMANDS` with its arguments. `repaired` takes back
what cannot be fulfilled. Fixed histories also have `run_leaves FOLDER …`, a run that changes no file there.
"""

import contextlib
import json
import re
import shutil
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.histories import edits
from tests.histories.accidents import ACCIDENTS, LOSES_RESULTS, LOSES_SCORES, ROOTS, befall
from tests.histories.beginning import snakemake
from tests.histories.economy import Economy
from tests.histories.oracle import differences, scored, snapshot, touched
from tests.histories.warm import Ended, Server
from tests.histories.world import World

Action = list[Any]

COMMANDS: dict[str, list[list[Any]]] = {
    "run": [
        ["all", "--forceall"],
        ["all", "--forcerun", "score"],
        ["all", "--forcerun", "collect"],
        ["all", "--rerun-triggers", "mtime", "params", "input", "code"],
    ],
    "looked": [["status"], ["doctor"], ["--dry-run"], ["--lint"]],
    "twice": [[]],
    "looked_meanwhile": [[number] for number in (5, 12, 20)],
}
"""What a user types but for a plain run, and what it may be given."""

KEEPS_RESULTS = (
    "margin objective_turned objective_metric checkpoint_deleted task_primary task_group slice_group "
    "probe_category order_of_objectives setting_of_no_result"
).split()
"""Edits after which every result that is there has to stay."""

STARTED = re.compile(r"(?m)^(?:local)?rule \w+:$")
DID = re.compile(r"(?m)^(?:local)?rule (?:score|collect|prefill_\w+|file):")


@dataclass
class Player:
    """Plays one history in a folder of its own."""

    server: Server
    world: World
    extra: dict[str, str] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    """What was done, and what was found wrong."""
    output: list[str] = field(default_factory=list)
    """All that the runs printed after which something was found wrong."""
    runs: int = 0
    held: dict[tuple[str, int | None], str] = field(default_factory=dict)
    """Places of the steps whose results nothing may take away, be their checkpoints there or not."""

    def __post_init__(self) -> None:
        self.folder = self.world.folder
        self.economy = Economy(self.world)

    def play(self, actions: Iterable[Action]) -> None:
        for action in actions:
            self.act(action)
        done = self.run("all")
        if is_refusal(done):
            self.act(["repaired"])
            done = self.run("all")
        self._again(done)
        self._compare(done)

    def act(self, action: Action) -> None:
        name, *arguments = action
        self.lines.append(" ".join(str(part) for part in action))
        if name in ("run_leaves", "killed", "meanwhile", *COMMANDS):
            getattr(self, name)(*arguments)
        elif name in ACCIDENTS:
            self.lines[-1] += f" ({befall(self.folder, name, *arguments)})"
            if name in LOSES_RESULTS:
                self.held.clear()
            if name in LOSES_SCORES:
                self.economy.stored.clear()
        else:
            edits.apply(self.world, name, *arguments)
            if name not in KEEPS_RESULTS:
                self.held.clear()

    def wrong(self, what: str, done: Ended | None = None) -> None:
        self.failures.append(what)
        self.lines.append(f"    ✗ {what}")
        self.output += [said(done)] if done else []

    # --- commands -------------------------------------------------------------------------------

    def python(self, arguments: list[str], folder: Path | None = None, **extra: str) -> Ended:
        self.runs += 1
        variables = {**self.world.environment, **self.extra, **extra}
        done = self.server.run(arguments, folder or self.folder, **variables)
        if "Traceback (most" in said(done):
            self.wrong(f"a traceback: {said(done).strip().splitlines()[-1][:300]}", done)
        return done

    def snakemake(self, *arguments: str, **extra: str) -> Ended:
        return self.python(snakemake(self.world, *arguments), **extra)

    def prefilled(self, **extra: str) -> Ended:
        """`snakemake prefill`, and `snakemake` if that ended well."""
        done = self.snakemake("prefill", **extra)
        return done if done.returncode else self.snakemake(**extra)

    @contextlib.contextmanager
    def counted(self, **how: bool) -> Iterator[None]:
        """What is done within asks nothing in vain; `how` it ends, as `Economy.after` has it."""
        self.economy.before()
        yield
        for what in self.economy.after(**how):
            self.wrong(what)

    def run(self, target: str, *more: str) -> Ended:
        with self.counted():
            done = self.snakemake("prefill")
            before = snapshot(self.folder)
            if not done.returncode and target != "prefill":
                done = self.snakemake(*([] if target == "all" else [target]), *more)
        if not more:
            self._judge(target, done, before)
        return done

    def run_leaves(self, *names: str) -> None:
        before = [snapshot(self.folder / name) for name in names]
        self.run("all")
        for name, times in zip(names, before, strict=True):
            found = touched(times, snapshot(self.folder / name))
            # A record of all that is prefilled is made anew where a suite changes; its entries are not.
            if found := [file for file in found if ".made/prefill-" not in file]:
                self.wrong(f"a run that has nothing to do in {name} changed {found[:4]}")

    def killed(self, moment: int, how: str = "KILL") -> None:
        with self.counted(is_cut=True):
            done = self.prefilled(HISTORIES_ACCIDENT=f"{how} {moment}")
        self.lines[-1] += f" (exit code {done.returncode})"
        if how == "KILL":
            self.snakemake("--unlock")

    def looked(self, *words: str) -> None:
        """What only looks changes nothing."""
        before = snapshot(self.folder)
        if words[0].startswith("--"):
            self.snakemake(*words)
        else:
            self.python(["-m", "evaluation", *words])
        if found := touched(before, snapshot(self.folder)):
            self.wrong(f"{' '.join(words)} changed {found[0]}")

    def twice(self) -> None:
        """Two Snakemakes in two folders, on one folder of results: one ends well, the other is refused."""
        (self.folder / "beside").mkdir(exist_ok=True)
        self.run("prefill")
        command = snakemake(self.world)
        with ThreadPoolExecutor(2) as both:
            folders = (self.folder, self.folder / "beside")
            ended = [*both.map(lambda folder: self.python(command, folder), folders)]
        for done in ended:
            if done.returncode and self._is_well() and "another run" not in said(done):
                self.wrong(f"one of two at once ended with {done.returncode}: {tail(done)}", done)
        if all(done.returncode for done in ended) and self._is_well():
            self.wrong("both of two at once were refused")

    def meanwhile(self, moment: int, action: Action) -> None:
        """An edit in the middle of a run."""
        with self._waiting(moment):
            self.act(action)

    def looked_meanwhile(self, moment: int) -> None:
        """A dry run and a second call in the middle of a run leave every file as it is."""
        with self._waiting(moment):
            for words in (["--dry-run"], ["prefill", "--dry-run"], []):
                before = snapshot(self.folder)
                self.snakemake(*words)
                if found := touched(before, snapshot(self.folder)):
                    self.wrong(f"{words or 'a second call'} during a run changed {found[:4]}")

    @contextlib.contextmanager
    def _waiting(self, moment: int) -> Iterator[None]:
        """Something is done while a run waits, or after it if it has ended before that moment."""
        with ThreadPoolExecutor(1) as beside:
            running = beside.submit(self.prefilled, HISTORIES_ACCIDENT=f"WAIT {moment}")
            while not (running.done() or (self.folder / "waiting").exists()):
                time.sleep(0.01)
            is_late = ", after it" * running.done()
            try:
                yield
            finally:
                (self.folder / "go").touch()
        for name in ("waiting", "go"):
            (self.folder / name).unlink(missing_ok=True)
        self.lines[-1] += f" (exit code {running.result().returncode}{is_late})"

    # --- judging --------------------------------------------------------------------------------

    def _is_well(self) -> bool:
        """Whether a run has nothing to complain about: what is deleted is scored, and nothing damaged."""
        return not self.world.faults and self.world.gone.keys() <= {*self.held.values()}

    def _judge(self, target: str, done: Ended, before: dict[str, Any]) -> None:
        if done.returncode and self._is_well():
            self.wrong(f"exit code {done.returncode}, without a fault: {tail(done)}", done)
        if target != "all":
            return
        if is_refusal(done):
            if found := touched(before, snapshot(self.folder)):
                self.wrong(f"touched by a run that is refused: {found[:4]}", done)
            return
        now = scored(self.world)
        for stage, step in sorted(self.held.keys() - now.keys(), key=str):
            self.wrong(f"dropped: step {step} of {stage}, which nothing had taken away", done)
        if done.returncode == 0:
            self.held = now

    def _again(self, first: Ended) -> None:
        """The same target once more finds nothing to do."""
        before = snapshot(self.folder)
        with self.counted():
            done = self.snakemake()
        if self.economy.scored():
            self.wrong(f"run again, {self.economy.scored()} items were scored", done)
        self._same_end(first, done)
        if found := DID.findall(said(done)):
            self.wrong(f"run again, there was something to do: {found}", done)
        if done.returncode == 0 and (found := touched(before, snapshot(self.folder))):
            self.wrong(f"run again, {found[:4]} changed", done)

    def _same_end(self, ours: Ended, other: Ended) -> None:
        if ours.returncode != other.returncode:
            codes = f"{ours.returncode}, then {other.returncode}"
            self.wrong(f"exit codes: {codes}: {tail(ours)} || {tail(other)}", other)

    @contextlib.contextmanager
    def _aside(self) -> Iterator[None]:
        """What was made is not there; at the end it is, and what was made in between lies in `.fresh`."""
        _move(self.folder, self.folder / ".ours")
        yield
        shutil.rmtree(self.folder / ".fresh", ignore_errors=True)
        _move(self.folder, self.folder / ".fresh")
        _move(self.folder / ".ours", self.folder)

    def _compare(self, first: Ended) -> None:
        """With a run in the same folder, from nothing.

        What was deleted after it was scored is put back for that, and taken away again once it is scored:
        so both have it marked as deleted.
        """
        kept = {*(places := scored(self.world)).values()} & self.world.gone.keys()
        roles = {
            (name, step) for name in self.world.stages for step in (None, *self.world.steps(name))
        }
        if any(self.world.role(*role) in kept for role in roles - places.keys()):
            return  # it was scored as one and not as the other, so no fresh run can be the same
        with self._aside():
            with self.world.restored(kept):
                done = self.prefilled()
            if kept:
                done = self.prefilled()
        self._same_end(first, done)
        for what in differences(self.world):
            self.wrong(what, done)


def _move(source: Path, target: Path) -> None:
    target.mkdir(exist_ok=True)
    for name in (*ROOTS, "cache", ".snakemake"):
        if (source / name).exists():
            shutil.move(source / name, target / name)


def said(done: Ended) -> str:
    return done.stdout + done.stderr


def is_refusal(done: Ended) -> bool:
    """Whether a run ended before its first job."""
    return bool(done.returncode) and not STARTED.search(said(done))


def tail(done: Ended) -> str:
    lines = [line.strip() for line in said(done).splitlines() if line.strip()]
    errors = [line for line in lines if "rror" in line and "log" not in line]
    return " | ".join((errors or lines)[-2:])[:400]


def read(path: Path) -> list[Action]:
    actions: list[Action] = json.loads(path.read_text())
    return actions
