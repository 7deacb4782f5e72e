"""The watcher: finds new checkpoints, starts Snakemake, reports each outcome in a line, and waits.

All its state is on disk: the results, the failures (`attempts`), and which process watches (`lock`).
So it can be stopped and restarted at any time, and `--once` is one of its rounds. It waits by a
monotonic clock.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluation.dependencies.known_steps import with_known_steps
from evaluation.errors import EvaluationError, first_few, time_in_words
from evaluation.orchestration.processes import Process
from evaluation.settings.config import Config
from evaluation.settings.effective import write_effective
from evaluation.settings.planning import plan_stages
from evaluation.watching.lock import StageLock
from evaluation.watching.runs import (
    BEAT,
    is_locked,
    make_pages,
    outcomes,
    run,
    snakemake,
)
from evaluation.watching.work import Work, check_caches, find_work


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of a watcher; times are in seconds, `arguments` are Snakemake's."""

    configuration: Path
    stages: tuple[str, ...]
    interval: float
    quiet: float
    arguments: tuple[str, ...]
    until_step: int | None
    give_up: float | None
    once: bool


class Watcher:
    """Watches the checkpoints of some stages."""

    def __init__(self, config: Config, options: Options) -> None:
        self.config = config
        self.options = options
        self.plans = plan_stages(config)
        self.locks = {name: StageLock(self.plans[name].results) for name in options.stages}
        self.failed: set[str] = set()
        self._reported: dict[str, str] = {}
        self._seen: object = None
        self._news = time.monotonic()
        self._may_unlock = False
        self._orphan: Process | None = None
        self.late = False
        """Whether the reports could not be made."""
        self._is_shown = False

    def watch(self) -> int:
        """Watch until `_ending` gives a reason; return 1 if a checkpoint failed or a page is outdated."""
        for name in self.options.stages:
            check_caches(self.plans[name])
        try:
            return self._watch()
        except (KeyboardInterrupt, SystemExit):
            self._report(
                "stopped on request: Snakemake, if it ran, was asked to stop; scores are kept"
            )
            raise
        finally:
            for lock in self.locks.values():
                lock.release()

    def _watch(self) -> int:
        how = (
            "one check"
            if self.options.once
            else f"a check every {time_in_words(self.options.interval)}"
        )
        self._report(f"watching {first_few(self.options.stages)}: {how}")
        work = self._round()
        while self._orphan or not self.options.once:
            if why := self._ending(work):
                self._report(why)
                break
            self._rest()
            try:
                work = self._round()
            except (EvaluationError, OSError) as error:  # a full disk, a removed folder
                self._report_once("round", str(error))
        return int(bool(self.failed or self.late))

    def _round(self) -> Work | None:
        """Look for work, and run Snakemake until nothing new is found; return the last `Work`."""
        while True:
            held = self._take_locks()
            work = find_work(self.config, held, self.options.quiet)
            self._report_skipped(work)
            if work.seen != self._seen:
                self._seen, self._news = work.seen, time.monotonic()
            has_run = bool(work.ready) and self._evaluate(work)
            if held and (has_run or self.late or not self._is_shown):
                self._make_pages(held)
            if not has_run or self.options.once:
                return work

    def _take_locks(self) -> list[str]:
        """Return the stages that no other process watches."""
        held = []
        for name, lock in self.locks.items():
            holder = lock.take()
            if holder is not None:
                self._report_once(f"lock {name}", f"{name}: watched by {holder}, so left to it")
            elif not self._is_orphaned(name, lock):
                self._reported.pop(f"lock {name}", None)
                held.append(name)
        return held

    def _is_orphaned(self, name: str, lock: StageLock) -> bool:
        """Return whether the Snakemake of a killed watcher still runs on this host."""
        left = lock.previous.snakemake if lock.previous else None
        if left is None or not left.is_here:
            return False
        if left.alive:
            self._orphan = left
            whose = f"process {left.pid}, Snakemake of a watcher that has ended, still runs"
            self._report_once(f"lock {name}", f"{name}: {whose}")
            return True
        lock.previous, self._may_unlock = None, True
        return False

    def _evaluate(self, work: Work) -> bool:
        """Run Snakemake for the ready checkpoints; return whether one was evaluated."""
        stages = list(dict.fromkeys(subject.plan.name for subject in work.ready))
        for name in stages:
            check_caches(work.plans[name])
        for name in stages:
            labels = [s.label for s in work.ready if s.plan.name == name]
            self._report(f"{name}: {first_few(labels)} ready; Snakemake starts")
        log = self._log(stages)
        command = snakemake(write_effective(work.config), work.targets, self.options.arguments)
        try:
            code = run(command, log, self._note_child)
        finally:
            self._note_child(None)
        if code and is_locked(log):
            return self._unlock(log) and self._evaluate(work)
        return self._report_outcomes(work, log)

    def _unlock(self, log: Path) -> bool:
        """Remove the locks of a killed watcher's Snakemake; return whether they were removed."""
        if not self._may_unlock:
            self._report_once(
                "run",
                "another Snakemake is working on these files; waiting until it ends (if none runs, "
                "`snakemake --unlock` removes what a killed one left)",
            )
            return False
        self._may_unlock = False
        command = snakemake(write_effective(self.config), ["--unlock"], self.options.arguments)
        return run(command, log, self._renew) == 0

    def _report_outcomes(self, work: Work, log: Path) -> bool:
        evaluated = False
        for outcome in outcomes(work, log):
            self._report(outcome.line)
            name = str(outcome.subject.folder)
            if outcome.is_evaluated:
                self.failed.discard(name)
                self._news, evaluated = time.monotonic(), True
            else:
                self.failed.add(name)
        self._reported.pop("run", None)
        return evaluated

    def _make_pages(self, held: Sequence[str]) -> None:
        """Make the reports; the next round tries those that failed again."""
        plans = plan_stages(with_known_steps(self.config))
        self.late, self._is_shown = False, True
        for name, line in make_pages(plans, held, self.options.configuration, self._renew):
            self.late |= not name
            self._report_once(f"pages {name}", line)

    def _report_skipped(self, work: Work) -> None:
        for name, why in work.skipped.items():
            if not why.startswith("failed: "):  # reported when it failed
                self._report_once(name, f"{name}: skipped: {why}")
        for name in [known for known in self._reported if known not in work.skipped]:
            if not name.startswith(("lock ", "pages ", "round", "run")):
                del self._reported[name]

    def _ending(self, work: Work | None) -> str | None:
        """Return why the watcher ends, in a sentence; None while it has something to wait for."""
        options = self.options
        quiet_for = time.monotonic() - self._news
        if options.give_up is not None and quiet_for >= options.give_up:
            return f"no new checkpoint for {time_in_words(quiet_for)}: the end"
        if work is None or self.late or set(work.evaluated) != set(options.stages):
            return None
        until = options.until_step
        last = [max(steps, default=-1) for steps in work.evaluated.values()]
        if until is not None and min(last) >= until:
            return f"step {until} is evaluated: the end"
        stages = {name: self.config.stages[name] for name in options.stages}
        if all(
            isinstance(stage.steps, tuple) and {*stage.steps} <= {*work.evaluated[name]}
            for name, stage in stages.items()
        ):
            return "all requested steps are evaluated: the end"
        return None

    def _rest(self) -> None:
        """Wait until the next round, or until the Snakemake of a killed watcher has ended."""
        end = time.monotonic() + self.options.interval
        while (left := end - time.monotonic()) > 0 and (not self._orphan or self._orphan.alive):
            time.sleep(min(left, BEAT))
            self._renew()
        self._orphan = None

    def _renew(self, _: int = 0) -> None:
        for lock in self.locks.values():
            lock.renew()

    def _note_child(self, child: int | None) -> None:
        for lock in self.locks.values():
            lock.note_child(child)

    def _log(self, stages: Sequence[str]) -> Path:
        return self.plans[stages[0]].results / "eval_logs" / "watch.log"

    def _report_once(self, about: str, line: str) -> None:
        """Print a line, unless the last one about the same subject was equal."""
        if self._reported.get(about) != line:
            self._reported[about] = line
            self._report(line)

    def _report(self, line: str) -> None:
        print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {line}", flush=True)
