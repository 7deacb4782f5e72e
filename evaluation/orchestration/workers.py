"""Scores several checkpoints in one job: one process per GPU, to which the steps are dealt out in turn.

A process imports the model's libraries once and scores one step after another. Each step has its own
log, as if a job scored it alone. If a process dies, its step fails and a new process replaces it. Each
process runs the module `checkpoints` as a program.
"""

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from evaluation.errors import ScoringError
from evaluation.orchestration.checkpoints import SCORES_ONLY
from evaluation.processes import THREADS, usable_cores
from evaluation.records import RECORDED
from evaluation.results.job_logs import last_error
from evaluation.scoring.gpus import VISIBLE, visible_names
from evaluation.settings.plan import StagePlan
from evaluation.version import CONFIG_VARIABLE

log = logging.getLogger(__name__)

PATIENCE = 3.0
"""Seconds between SIGTERM and SIGKILL; Slurm itself may wait no longer than five."""


def score_on_all_gpus(
    plan: StagePlan, steps: Sequence[int], config: Path, *, scores_only: bool
) -> int:
    """Score steps of a stage on all GPUs that the job sees; without a GPU, one after the other.

    Args:
        scores_only: Whether another step, which needs no GPU, writes the tier files.

    Raises:
        ScoringError: When steps failed; raised once all others are done, names the failed ones.
    """
    os.environ[CONFIG_VARIABLE] = str(config.absolute())
    gpus = gpus_to_use(plan)[: len(steps)]
    threads = max(1, usable_cores() // len(gpus))
    workers = _Workers(plan, threads, scores_only)
    with ThreadPoolExecutor(len(gpus)) as pool, workers.ended():
        shares = [steps[number :: len(gpus)] for number in range(len(gpus))]
        list(pool.map(workers.work, gpus, shares))
    if workers.failed:
        named = ", ".join(map(str, sorted(workers.failed)))
        raise ScoringError(
            f"stages.{plan.name}: of steps {', '.join(map(str, steps))} these failed: {named}; the "
            f"reasons stand above and in {plan.step_log(min(workers.failed)).parent}. The others are "
            "scored: run again, which takes seconds for them, or take the failed ones out of `steps`"
        )
    return RECORDED if workers.recorded else 0


def gpus_to_use(plan: StagePlan) -> list[str | None]:
    """Return CUDA_VISIBLE_DEVICES for each process; [None] to leave it unchanged."""
    return [None] if plan.config.scoring.device == "cpu" else [*visible_names()] or [None]


def _start(arguments: Sequence[str], gpu: str | None, threads: int) -> "subprocess.Popen[str]":
    """Start a process that scores steps on a GPU; None: on that of the environment."""
    environment = {THREADS: str(threads), **os.environ}
    if gpu is not None:
        environment[VISIBLE] = gpu
    return subprocess.Popen(
        [sys.executable, "-m", "evaluation.orchestration.checkpoints", *arguments],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, env=environment,
    )  # fmt: skip


def _score(process: "subprocess.Popen[str]", step: int) -> int:
    """Have a process score a step; return its exit code.

    If the process has died, the code is that of the process (negative for a signal).
    """
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{step}\n")
    answer = process.stdout.readline()
    return int(answer) if answer else process.wait()


class _Workers:
    """The processes that score steps, and the failed steps."""

    def __init__(self, plan: StagePlan, threads: int, scores_only: bool) -> None:
        self.plan = plan
        self.arguments = [plan.name, *([SCORES_ONLY] if scores_only else [])]
        self.threads = threads
        self.failed: set[int] = set()
        self.recorded: set[int] = set()
        self.processes: list[subprocess.Popen[str]] = []
        self.stopping = False
        self.hiring = threading.Lock()

    def work(self, gpu: str | None, steps: Sequence[int]) -> None:
        """Have steps scored on a GPU, one after the other.

        Args:
            gpu: CUDA_VISIBLE_DEVICES of the process; None to leave it unchanged.
        """
        process = None
        for step in steps:
            if process is None or process.poll() is not None:
                process = self._hire(gpu)
            if process is None:
                return
            log.info("step %d: begun%s", step, "" if gpu is None else f" on GPU {gpu}")
            start = time.perf_counter()
            code = _score(process, step)
            self._report(step, code, time.perf_counter() - start)
        if process is not None:
            process.communicate()  # closes its input, so that it ends

    def _hire(self, gpu: str | None) -> "subprocess.Popen[str] | None":
        with self.hiring:
            if self.stopping:
                return None
            self.processes.append(_start(self.arguments, gpu, self.threads))
            return self.processes[-1]

    def _report(self, step: int, code: int, seconds: float) -> None:
        if code == 0:
            log.info("step %d: done in %.1f s", step, seconds)
        elif not self.stopping:
            (self.recorded if code == RECORDED else self.failed).add(step)
            path = self.plan.step_log(step)
            log.error("step %d: %s (%s)", step, last_error(path) or f"exit code {code}", path)

    @contextmanager
    def ended(self) -> Iterator[None]:
        """End all processes when the block ends, also after an error."""
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # may be sent twice
            with self.hiring:
                self.stopping = True
            for process in self.processes:
                process.terminate()
            end = time.monotonic() + PATIENCE
            for process in self.processes:
                try:
                    process.wait(timeout=max(0.0, end - time.monotonic()))
                except subprocess.TimeoutExpired:
                    process.kill()
