"""Runs of the workflow on the test cluster, and ways to disturb and to compare them."""

import os
import re
import signal
import subprocess
import sys
import time
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
PROMPT = """
import sys
from snakemake.cli import main
from snakemake_executor_plugin_slurm import Executor
Executor.next_seconds_between_status_checks = property(lambda executor: 3.0, lambda *ignored: None)
sys.exit(main())
"""
"""Snakemake that asks the queue every 3 s; as shipped it waits 10 s longer after each round without news."""
OUTER = {"SLURM_JOB_ID": "1", "SLURM_MEM_PER_CPU": "1", "SLURM_CPU_BIND": "no such binding"}
"""As if Snakemake ran inside a job; none of its jobs would start with this, or with a profile that is
not there."""


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
        command = [sys.executable, "-c", PROMPT, *arguments]
        command += ["-s", f"{ROOT}/workflow/Snakefile", "--configfile", "config.yaml"]
        command += ["--profile", "profile", "--slurm-init-seconds-before-status-checks", "3"]
        with open(self.folder / "snakemake.log", "ab") as log:
            self.process = subprocess.Popen(
                command, cwd=self.folder, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                start_new_session=True,
                env={**os.environ, **OUTER, "SNAKEMAKE_PROFILE": "nowhere", "PYTHONPATH": str(ROOT)},
            )  # fmt: skip

    def score(self, *steps: int) -> None:
        """Starts scoring the given steps."""
        self.steps |= {*steps}
        self.start(*(str(self.tier(step)) for step in steps))

    def end_well(self, *arguments: str) -> None:
        """Starts Snakemake with these arguments, if there are any, and waits for its good end."""
        if arguments:
            self.start(*arguments)
        assert self.process is not None
        assert self.process.wait(timeout=400.0) == 0, self.log

    def kill(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def start_again(self) -> None:
        """Kills Snakemake, and does what its message about the lock says."""
        self.kill()
        self.end_well("--unlock")
        self.score(*self.steps)

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

    def processes(self) -> list[int]:
        """Pids of this run's Python processes on any node."""
        found = psutil.process_iter(["cmdline", "environ"])
        ours = f"{self.results}/.config/"
        return [
            process.pid
            for process in found
            if (process.info["cmdline"] or [])[1:3] == ["-m", "evaluation"]
            and (process.info["environ"] or {}).get("EVALUATION_CONFIG", "").startswith(ours)
        ]

    def hold(self) -> int:
        """Scores a step, and freezes the process once two items are stored; returns its pid.

        A frozen process gets its SIGTERM when Slurm continues it, as Slurm does before it kills.
        """
        self.score(STEP)
        end = time.monotonic() + 240.0
        while time.monotonic() < end:
            if len(stored_scores(self.results)) >= 2 and (pids := self.processes()):
                os.kill(pids[0], signal.SIGSTOP)
                if not list(self.results.rglob("*.tmp")):
                    self.kept = stored_scores(self.results)
                    return pids[0]
                os.kill(pids[0], signal.SIGCONT)  # in the middle of a file, which would be left
            time.sleep(0.01)
        raise AssertionError(f"not two items were stored:\n{self.log}")

    def tier(self, step: int) -> Path:
        return self.checkpoints / f"step_{step}/tier2_ppl.json"

    def finish(self, undisturbed: Path) -> None:
        """Ends well, with the results that an undisturbed run has of these steps.

        No item that had been stored was scored again, and nothing of the run is left behind.
        """
        self.end_well()
        now = stored_scores(self.results)
        assert {name: now.get(name) for name in self.kept} == self.kept
        for step in self.steps:
            ours, theirs = (folder / f"step_{step}" for folder in (self.checkpoints, undisturbed))
            assert [*differences_of(ours, theirs)] == []
        wait_for("end of the run's processes", lambda: not self.processes(), 60.0)
        assert list(self.results.rglob("*.tmp")) == []
