"""Several checkpoints in one job: one process per GPU, each taking the next step when it is free.

A process imports the model's libraries once and scores one step after another, each with a log of its
own, as that of a job for this step alone. One that dies takes its step with it and is
replaced. This module, run by itself, is such a process.
"""

import gc
import logging
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from evaluation.checkpoints.subjects import step_subject
from evaluation.errors import ScoringError
from evaluation.exit_codes import exit_code, prepare_streams, start_logging
from evaluation.records import RECORDED
from evaluation.reporting.status import last_error
from evaluation.settings.config import load_config
from evaluation.settings.effective import CONFIG_VARIABLE
from evaluation.settings.plan import StagePlan, plan_stage

log = logging.getLogger(__name__)

PATIENCE = 3.0
"""Seconds between SIGTERM and SIGKILL; Slurm itself may wait no longer than five."""


SCORES_ONLY = "--scores-only"


def score_on_all_gpus(
    plan: StagePlan, steps: Sequence[int], config: Path, *, scores_only: bool = False
) -> int:
    """Scores steps of a stage on all GPUs that the job sees; without one, one after the other.

    Returns 0, or RECORDED if some cannot be scored and their records say why.

    Raises:
        ScoringError: naming every step that failed, once all others are done.
    """
    os.environ[CONFIG_VARIABLE] = str(config.absolute())
    gpus = gpus_to_use(plan)[: len(steps)]
    threads = max(1, len(os.sched_getaffinity(0)) // len(gpus))
    workers = _Workers(plan, steps, threads, scores_only)
    with ThreadPoolExecutor(len(gpus)) as pool, workers.ended():
        for done in [pool.submit(workers.work, gpu) for gpu in gpus]:
            done.result()
    if workers.failed:
        named = ", ".join(map(str, sorted(workers.failed)))
        raise ScoringError(
            f"stages.{plan.name}: of steps {', '.join(map(str, steps))} these failed: {named}; the "
            f"reasons stand above and in {plan.step_log(min(workers.failed)).parent}. The others are "
            "scored: run again, which takes seconds for them, or take the failed ones out of `steps`"
        )
    return RECORDED if workers.recorded else 0


def gpus_to_use(plan: StagePlan) -> list[str | None]:
    """What CUDA_VISIBLE_DEVICES may be for one process each; [None] to leave it as it is."""
    if plan.config.scoring.device == "cpu":
        return [None]
    listed = os.environ.get("CUDA_VISIBLE_DEVICES")
    if listed is None:
        import torch

        listed = ",".join(map(str, range(torch.cuda.device_count())))
    gpus: list[str | None] = [name for name in listed.split(",") if name not in ("", "-1")]
    return gpus or [None]


class _Worker:
    """A process that scores the steps it is told, on one GPU."""

    def __init__(self, arguments: Sequence[str], gpu: str | None, threads: int) -> None:
        environment = {"OMP_NUM_THREADS": str(threads), **os.environ}
        if gpu is not None:
            environment["CUDA_VISIBLE_DEVICES"] = gpu
        self.process = subprocess.Popen(
            [sys.executable, "-m", "evaluation.orchestration.workers", *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, env=environment,
        )  # fmt: skip

    def score(self, step: int) -> int:
        """Exit code of a step; the process's own, negative for a signal, if it has died."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{step}\n")
        answer = self.process.stdout.readline()
        return int(answer) if answer else self.process.wait()


class _Workers:
    """The steps to do, the processes that do them, and what failed."""

    def __init__(
        self, plan: StagePlan, steps: Sequence[int], threads: int, scores_only: bool
    ) -> None:
        self.plan = plan
        self.arguments = [plan.name, *([SCORES_ONLY] if scores_only else [])]
        self.threads = threads
        self.failed: set[int] = set()
        self.recorded: set[int] = set()
        self.workers: list[_Worker] = []
        self.stopping = False
        self.hiring = threading.Lock()
        self.todo: queue.SimpleQueue[int] = queue.SimpleQueue()
        for step in steps:
            self.todo.put(step)

    def work(self, gpu: str | None) -> None:
        """Has steps scored on a GPU until none is left."""
        worker = None
        while (step := self._next()) is not None:
            if worker is None or worker.process.poll() is not None:
                worker = self._hire(gpu)
            if worker is None:
                return
            log.info("step %d: begun%s", step, "" if gpu is None else f" on GPU {gpu}")
            start = time.perf_counter()
            code = worker.score(step)
            self._tell(step, code, time.perf_counter() - start)
        if worker is not None:
            worker.process.communicate()  # closes its input, so that it ends

    def _next(self) -> int | None:
        try:
            return self.todo.get_nowait()
        except queue.Empty:
            return None

    def _hire(self, gpu: str | None) -> _Worker | None:
        with self.hiring:
            if self.stopping:
                return None
            self.workers.append(_Worker(self.arguments, gpu, self.threads))
            return self.workers[-1]

    def _tell(self, step: int, code: int, seconds: float) -> None:
        if code == 0:
            log.info("step %d: done in %.1f s", step, seconds)
        elif not self.stopping:
            (self.recorded if code == RECORDED else self.failed).add(step)
            path = self.plan.step_log(step)
            log.error("step %d: %s (%s)", step, last_error(path) or f"exit code {code}", path)

    @contextmanager
    def ended(self) -> Iterator[None]:
        """Leaves no process behind, however the block is left."""
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # sent to all of a job, perhaps twice
            with self.hiring:
                self.stopping = True
            for worker in self.workers:
                worker.process.terminate()
            end = time.monotonic() + PATIENCE
            for worker in self.workers:
                try:
                    worker.process.wait(timeout=max(0.0, end - time.monotonic()))
                except subprocess.TimeoutExpired:
                    worker.process.kill()


def serve(stage: str, *, scores_only: bool) -> None:
    """Scores the steps that stdin names, one a line; answers each with its exit code."""
    from evaluation.orchestration.checkpoints import score_checkpoint

    prepare_streams()
    start_logging()
    plan = plan_stage(load_config(os.environ[CONFIG_VARIABLE]), stage)
    steps, answers, errors = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w"), os.dup(2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for step in steps:
        _write_to(plan.step_log(int(step)))
        subject = step_subject(plan, int(step))
        score = partial(score_checkpoint, subject, scores_only=scores_only)
        code = exit_code(score, is_scoring=True)
        sys.stdout.flush()
        os.dup2(errors, 1)
        os.dup2(errors, 2)
        gc.collect()  # the last model, before the next one is loaded
        print(code, file=answers, flush=True)


def _write_to(path: Path) -> None:
    """All output goes to a file; what Python says as it dies does too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)


if __name__ == "__main__":
    serve(sys.argv[1], scores_only=SCORES_ONLY in sys.argv[2:])
