"""Runs of the workflow on the test cluster, and ways to disturb and to compare them."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import yaml

from tests.slurm.cluster import slurm, wait_for
from tests.workflow.world import World, stored_scores

ROOT = Path(__file__).resolve().parents[2]
SLICES = 8
STEPS = (10, 20)
FAST_POLLS = ("--slurm-init-seconds-before-status-checks", "3")
TIMES = {"seconds", "tokens_per_second"}
ACTIVE = {"RUNNING", "COMPLETING", "PENDING", "CONFIGURING"}


def make_scoring_slow(world: World) -> None:
    """One stage of eight slices: a job has many moments between two stored items."""
    suite = world.folder / "suites" / "many.yaml"
    slices = {f"text{n}": {"dataset": "made/text", "tokens": 1280} for n in range(SLICES)}
    suite.write_text(yaml.safe_dump({"extends": "base", "slices": slices}))
    stages = yaml.safe_load(world.config.read_text())["stages"]
    stages["stage1"]["suites"] = ["many"]
    world.change(stages={"stage1": stages["stage1"]})
    done = world.evaluation("prefill", "--config", str(world.config))
    assert done.returncode == 0, done.stderr


def shared_jobs(checkpoints: int) -> dict[str, str]:
    """The profile's lines for so many checkpoints a job, uncommented."""
    lines = ('gres: "gpu:4"', "tasks_per_gpu: 0", "cpus_per_task: 32", "mem_mb: 256000")
    return {
        "# checkpoints: 16": f"checkpoints: {checkpoints}",
        **{f"# {line}": line for line in (*lines, "runtime: 120 * attempt")},
    }


@dataclass
class Run:
    """Snakemake in a folder of its own; checkpoints and caches are the world's."""

    world: World
    folder: Path
    results: Path
    settings: dict[str, Any] = field(default_factory=dict)
    profile: dict[str, str] = field(default_factory=dict)
    """Pieces of the shipped profile to replace in this run's copy of it."""
    process: "subprocess.Popen[bytes] | None" = None

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        content = yaml.safe_load(self.world.config.read_text())
        content.update({"results": str(self.results), **self.settings})
        (self.folder / "config.yaml").write_text(yaml.safe_dump(content))
        shipped = (ROOT / "slurm_profile" / "config.yaml").read_text()
        for old, new in self.profile.items():
            assert old in shipped, f"the profile has no {old!r}"
            shipped = shipped.replace(old, new)
        (self.folder / "profile").mkdir(exist_ok=True)
        (self.folder / "profile" / "config.yaml").write_text(shipped)

    # --- Snakemake ------------------------------------------------------------------------------

    def command(self, *arguments: str) -> list[str]:
        command = [
            sys.executable,
            "-m",
            "snakemake",
            *arguments,
            "-s",
            f"{ROOT}/workflow/Snakefile",
        ]
        command += ["--configfile", "config.yaml", "--profile", "profile"]
        return [*command, *FAST_POLLS]

    def start(self, *arguments: str, environment: dict[str, str] | None = None) -> None:
        with open(self.folder / "snakemake.log", "ab") as log:
            self.process = subprocess.Popen(
                self.command(*arguments), cwd=self.folder, stdout=log, stderr=log,
                stdin=subprocess.DEVNULL, start_new_session=True,
                env={**os.environ, **(environment or {})},
            )  # fmt: skip

    def score(
        self,
        *options: str,
        steps: tuple[int, ...] = STEPS,
        environment: dict[str, str] | None = None,
    ) -> None:
        """Starts scoring the given steps."""
        targets = [str(self.tier(step)) for step in steps]
        self.start(*targets, *options, environment=environment)

    def wait(self, seconds: float = 240.0) -> int:
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

    def jobs(self, step: int = STEPS[0]) -> dict[str, str]:
        """Slurm ids and states of all jobs of this folder that score a step, oldest first."""
        lines = slurm("squeue", "--states=all", "-h", "-S", "i", "-o", "%i|%T|%k|%Z").splitlines()
        found = {}
        for line in lines:
            job, state, comment, folder = line.split("|")
            if folder == str(self.folder) and comment.endswith(f"_wildcards_{step}"):
                found[job] = state
        return found

    def job(self, step: int = STEPS[0]) -> str:
        """The newest job of a step."""
        return list(self.jobs(step))[-1]

    def node(self, step: int = STEPS[0]) -> str:
        return slurm("squeue", "-h", "-j", self.job(step), "-o", "%N")

    def scorers(self, step: int | None = None) -> list[int]:
        """Pids of the processes that score for this run, on any node."""
        return [pid for pid, words in self.processes() if b"score" in words and _is(words, step)]

    def processes(self) -> Iterator[tuple[int, list[bytes]]]:
        """Pids and command lines of all Python processes that were started for this run."""
        mark = f"EVALUATION_CONFIG={self.results}/.config/".encode()
        for folder in Path("/proc").iterdir():
            if not folder.name.isdigit():
                continue
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
                if (
                    words[1:3] == [b"-m", b"evaluation"]
                    and mark in (folder / "environ").read_bytes()
                ):
                    yield int(folder.name), words
            except OSError:  # it has just ended
                continue

    def hold(self, step: int | None = STEPS[0], items: int = 2, seconds: float = 120.0) -> int:
        """Freezes a scoring process (None: any) once so many items are stored; returns its pid.

        A frozen process gets its SIGTERM when Slurm continues it, as Slurm does before it kills.
        """
        before = len(self.stored())
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            pids = self.scorers(step)
            if pids and len(self.stored()) >= before + items:
                os.kill(pids[-1], signal.SIGSTOP)
                return pids[-1]
            time.sleep(0.01)
        raise AssertionError(f"step {step} did not store {items} items:\n{self.log}")

    # --- its files ------------------------------------------------------------------------------

    def tier(self, step: int) -> Path:
        return self.results / "stage1" / "by_checkpoint" / f"step_{step}" / "tier2_ppl.json"

    def job_log(self, step: int = STEPS[0]) -> str:
        logs = self.results / "stage1" / "eval_logs" / "slurm"
        return (logs / f"stage1_step_{step}.log").read_text(errors="replace")

    def stored(self) -> dict[str, str]:
        return stored_scores(self.results)

    def outcome(self) -> dict[str, Any]:
        """All tier files but for how long they took: parsed JSON and tables."""
        found: dict[str, Any] = {}
        for path in sorted(self.results.glob("stage*/*/**/*")):
            if path.suffix == ".json":
                found[str(path.relative_to(self.results))] = timeless(json.loads(path.read_text()))
            elif path.suffix == ".parquet":
                found[str(path.relative_to(self.results))] = pq.read_table(path).to_pydict()
        return found

    def assert_clean(self) -> None:
        """No process of the run is left, and no half-written file."""
        wait_for("end of the run's processes", lambda: not list(self.processes()))
        assert list(self.results.rglob("*.tmp")) == []


def _is(words: list[bytes], step: int | None) -> bool:
    return step is None or str(step).encode() in words


def timeless(content: Any) -> Any:
    if isinstance(content, dict):
        return {key: timeless(value) for key, value in content.items() if key not in TIMES}
    if isinstance(content, list):
        return [timeless(value) for value in content]
    return content
