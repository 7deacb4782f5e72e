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
from tests.histories.warm import ROOT, wait_for
from tests.slurm.cluster import slurm
from tests.workflow.world import World, stored_scores

STEP, OTHER_STEP = 10, 20
BOTH = (STEP, OTHER_STEP)


@dataclass
class Run:
    """Snakemake in a folder of its own; checkpoints and caches are the world's."""

    world: World
    folder: Path
    settings: dict[str, Any] = field(default_factory=dict)
    profile: dict[str, str] = field(default_factory=dict)
    """Pieces of the shipped profile to replace in this run's copy of it."""
    process: "subprocess.Popen[bytes] | None" = None
    steps: set[int] = field(default_factory=set)
    """All steps that this run was told to score."""
    kept: dict[str, str] = field(default_factory=dict)
    """What was stored when a process was frozen."""

    def __post_init__(self) -> None:
        (self.folder / "profile").mkdir(parents=True)
        self.results = self.folder / "results"
        self.checkpoints = self.results / "stage1/by_checkpoint"
        content = yaml.safe_load(self.world.config.read_text())
        content.update({"results": str(self.results), **self.settings})
        (self.folder / "config.yaml").write_text(yaml.safe_dump(content))
        shipped = (ROOT / "slurm_profile/config.yaml").read_text()
        for old, new in {"# slurm-status-command": "slurm-status-command", **self.profile}.items():
            assert old in shipped, f"the profile has no {old!r}"
            shipped = shipped.replace(old, new)
        (self.folder / "profile/config.yaml").write_text(shipped)

    def start(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "tests.slurm.prompt_snakemake", *arguments]
        command += ["-s", f"{ROOT}/workflow/Snakefile", "--configfile", "config.yaml"]
        command += ["--profile", "profile", "--slurm-init-seconds-before-status-checks", "3"]
        with open(self.folder / "snakemake.log", "ab") as log:
            self.process = subprocess.Popen(
                command, cwd=self.folder, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                start_new_session=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
            )  # fmt: skip

    def score(self, *steps: int) -> None:
        """Starts scoring the given steps."""
        self.steps |= {*steps}
        self.start(*(str(self.tier(step)) for step in steps))

    def end_well(self, *arguments: str, seconds: float = 400.0) -> None:
        """Starts Snakemake with these arguments, if there are any, and waits for its good end."""
        if arguments:
            self.start(*arguments)
        assert self.process is not None
        assert self.process.wait(timeout=seconds) == 0, self.log

    def kill(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    @property
    def log(self) -> str:
        return (self.folder / "snakemake.log").read_text(errors="replace")

    def jobs(self, steps: int | str = STEP) -> dict[str, str]:
        """Slurm ids and states of all jobs of this folder that score these steps, oldest first."""
        lines = slurm("squeue", "--states=all", "-h", "-S", "i", "-o", "%i|%T|%k|%Z").splitlines()
        jobs = (line.split("|") for line in lines)
        ours = rf"rule_score_.*_{steps}_[0-9a-f]{{16}}"
        return {
            job: state
            for job, state, comment, folder in jobs
            if folder == str(self.folder) and re.search(ours, comment)
        }

    def job(self, step: int = STEP) -> str:
        """The newest job of a step."""
        return list(self.jobs(step))[-1]

    def node(self) -> str:
        return slurm("squeue", "-h", "-j", self.job(), "-o", "%N")

    def processes(self, *words: str) -> Iterator[int]:
        """Pids of this run's Python processes on any node, whose command lines have these words."""
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):  # it has just ended
                command = process.cmdline()
                if command[1:3] == ["-m", "evaluation"] and {*words} <= {*command}:
                    config = process.environ().get("EVALUATION_CONFIG", "")
                    if config.startswith(f"{self.results}/.config/"):
                        yield process.pid

    def hold(self, items: int = 2, seconds: float = 240.0) -> int:
        """Scores a step, and freezes the process once so many items are stored; returns its pid.

        A frozen process gets its SIGTERM when Slurm continues it, as Slurm does before it kills.
        """
        self.score(STEP)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            pids = [*self.processes("score", str(STEP))]
            if pids and len(stored_scores(self.results)) >= items:
                os.kill(pids[-1], signal.SIGSTOP)
                if not list(self.results.rglob("*.tmp")):
                    self.kept = stored_scores(self.results)
                    return pids[-1]
                os.kill(pids[-1], signal.SIGCONT)  # in the middle of a file, which would be left
            time.sleep(0.01)
        raise AssertionError(f"not {items} items were stored:\n{self.log}")

    def tier(self, step: int) -> Path:
        return self.checkpoints / f"step_{step}/tier2_ppl.json"

    def finish(self, undisturbed: Path) -> None:
        """Ends well, with the results that an undisturbed run has of these steps, and no others.

        No item that had been stored was scored again, and nothing of the run is left behind.
        """
        self.end_well()
        now = stored_scores(self.results)
        assert {name: now.get(name) for name in self.kept} == self.kept
        others = tuple(f"missing: step_{step}/" for step in {*BOTH} - self.steps)
        found = differences_of(self.checkpoints, undisturbed)
        assert [what for what in found if not what.startswith(others)] == []
        wait_for("end of the run's processes", lambda: not [*self.processes()], 60.0)
        assert list(self.results.rglob("*.tmp")) == []
