"""Runs of the workflow on the test cluster, and ways to disturb and to compare them."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import yaml

from tests.histories.oracle import differences_of
from tests.histories.warm import well
from tests.slurm.cluster import slurm, wait_for
from tests.workflow.world import World, stored_scores

ROOT = Path(__file__).resolve().parents[2]
SLICES = 8
STEP, OTHER_STEP = 10, 20
BOTH = (STEP, OTHER_STEP)
PROMPT_SNAKEMAKE = "tests.slurm.prompt_snakemake"
FAST_POLLS = ("--slurm-init-seconds-before-status-checks", "3")
Stored = dict[str, str]


def make_scoring_slow(world: World) -> None:
    """One stage of eight slices: a job has many moments between two stored items."""
    suite = world.folder / "suites" / "many.yaml"
    # Of other lengths, as one that is stored under another name is not scored again.
    slices = {f"text{n}": {"dataset": "made/text", "tokens": 1280 - 64 * n} for n in range(SLICES)}
    suite.write_text(yaml.safe_dump({"extends": "base", "slices": slices}))
    stages = yaml.safe_load(world.config.read_text())["stages"]
    stages["stage1"]["suites"] = ["many"]
    world.change(stages={"stage1": stages["stage1"]})
    well(world.evaluation("prefill", "--config", str(world.config)))


@dataclass
class Run:
    """Snakemake in a folder of its own; checkpoints and caches are the world's."""

    world: World
    folder: Path
    results: Path
    settings: dict[str, Any] = field(default_factory=dict)
    profile: dict[str, str] = field(default_factory=dict)
    """Pieces of the shipped profile to replace in this run's copy of it."""
    program: str = "snakemake"
    process: "subprocess.Popen[bytes] | None" = None
    steps: set[int] = field(default_factory=set)
    """All steps that this run was told to score."""
    kept: Stored = field(default_factory=dict)
    """What was stored when a process was frozen."""

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        content = yaml.safe_load(self.world.config.read_text())
        content.update({"results": str(self.results), **self.settings})
        (self.folder / "config.yaml").write_text(yaml.safe_dump(content))
        shipped = (ROOT / "slurm_profile" / "config.yaml").read_text()
        shipped = shipped.replace("# slurm-status-command", "slurm-status-command")
        for old, new in self.profile.items():
            assert old in shipped, f"the profile has no {old!r}"
            shipped = shipped.replace(old, new)
        (self.folder / "profile").mkdir(exist_ok=True)
        (self.folder / "profile" / "config.yaml").write_text(shipped)

    # --- Snakemake ------------------------------------------------------------------------------

    def command(self, *arguments: str) -> list[str]:
        command = [sys.executable, "-m", self.program, *arguments]
        command += ["-s", f"{ROOT}/workflow/Snakefile"]
        command += ["--configfile", "config.yaml", "--profile", "profile"]
        return [*command, *FAST_POLLS]

    def start(self, *arguments: str) -> None:
        with open(self.folder / "snakemake.log", "ab") as log:
            self.process = subprocess.Popen(
                self.command(*arguments), cwd=self.folder, stdout=log, stderr=log,
                stdin=subprocess.DEVNULL, start_new_session=True,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )  # fmt: skip

    def score(self, *options: str, steps: tuple[int, ...] = (STEP,)) -> None:
        """Starts scoring the given steps."""
        self.steps |= set(steps)
        self.start(*(str(self.tier(step)) for step in steps), *options)

    def wait(self, seconds: float = 400.0) -> int:
        assert self.process is not None
        try:
            return self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"Snakemake still runs after {seconds} s:\n{self.log}") from None

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    @property
    def log(self) -> str:
        return (self.folder / "snakemake.log").read_text(errors="replace")

    # --- its jobs -------------------------------------------------------------------------------

    def jobs(self, step: int | str = STEP) -> dict[str, str]:
        """Slurm ids and states of all jobs of this folder that score a step, oldest first."""
        lines = slurm("squeue", "--states=all", "-h", "-S", "i", "-o", "%i|%T|%k|%Z").splitlines()
        found = {}
        for line in lines:
            job, state, comment, folder = line.split("|")
            if folder == str(self.folder) and re.search(
                rf"rule_score_.*_{step}_[0-9a-f]{{16}}", comment
            ):
                found[job] = state
        return found

    def job(self, step: int = STEP) -> str:
        """The newest job of a step."""
        return list(self.jobs(step))[-1]

    def node(self, step: int = STEP) -> str:
        return slurm("squeue", "-h", "-j", self.job(step), "-o", "%N")

    def scorers(self, step: int | None = None) -> list[int]:
        """Pids of the processes that score (a step) for this run, on any node."""
        marks = {"score"} if step is None else {"score", str(step)}
        return [pid for pid, words in self.processes() if marks <= set(words)]

    def processes(self) -> Iterator[tuple[int, list[str]]]:
        """Pids and command lines of all Python processes that were started for this run."""
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):  # it has just ended
                words = process.cmdline()
                if words[1:3] == ["-m", "evaluation"]:
                    config = process.environ().get("EVALUATION_CONFIG", "")
                    if config.startswith(f"{self.results}/.config/"):
                        yield process.pid, words

    def hold(self, step: int | None = STEP, items: int = 2, seconds: float = 240.0) -> int:
        """Freezes a scoring process (None: any) once so many items are stored; returns its pid.

        A frozen process gets its SIGTERM when Slurm continues it, as Slurm does before it kills.
        """
        before = len(self.stored())
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            pids = self.scorers(step)
            if pids and len(self.stored()) >= before + items:
                os.kill(pids[-1], signal.SIGSTOP)
                if not list(self.results.rglob("*.tmp")):
                    self.kept = self.stored()
                    return pids[-1]
                os.kill(pids[-1], signal.SIGCONT)  # in the middle of a file, which would be left
            time.sleep(0.01)
        raise AssertionError(f"step {step} did not store {items} items:\n{self.log}")

    # --- its files ------------------------------------------------------------------------------

    def tier(self, step: int) -> Path:
        return self.checkpoints() / f"step_{step}" / "tier2_ppl.json"

    def stored(self) -> Stored:
        return stored_scores(self.results)

    def checkpoints(self) -> Path:
        return self.results / "stage1" / "by_checkpoint"

    def finish(self, undisturbed: Path) -> None:
        """Ends well, with the results that an undisturbed run has of these steps, and no others.

        No item that had been stored was scored again, and nothing of the run is left behind.
        """
        assert self.wait() == 0, self.log
        assert self.kept, "the fault came before anything was stored"
        now = self.stored()
        assert {name: now.get(name) for name in self.kept} == self.kept
        self.assert_results(undisturbed)
        self.assert_clean()

    def assert_results(self, undisturbed: Path) -> None:
        found = differences_of(self.checkpoints(), undisturbed)
        others = tuple(f"missing: step_{step}/" for step in {*BOTH} - self.steps)
        assert [what for what in found if not what.startswith(others)] == []

    def assert_clean(self) -> None:
        """No process of the run is left, and no half-written file."""
        wait_for("end of the run's processes", lambda: not list(self.processes()), 60.0)
        assert list(self.results.rglob("*.tmp")) == []
