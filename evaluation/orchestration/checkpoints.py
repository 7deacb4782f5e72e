"""Scores and grades a checkpoint. As a program (started by `workers`): the steps named on stdin."""

import gc
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from evaluation.checkpoints.subjects import Subject, stage_steps, step_subject
from evaluation.dependencies.making import make
from evaluation.dependencies.steps import COLLECT, SCORE
from evaluation.errors import ConfigError, GpuFault, did_you_mean, report
from evaluation.processes import exit_code, start_logging
from evaluation.records import RECORDED
from evaluation.settings.config import load_config
from evaluation.settings.planning import plan_stage
from evaluation.version import CONFIG_VARIABLE

SCORES_ONLY = "--scores-only"


def score_checkpoint(subject: Subject, *, scores_only: bool) -> int:
    """Score a checkpoint and write its tier files; return 0, or RECORDED if its record has an error.

    Args:
        scores_only: Whether another step, which needs no GPU, writes the tier files.

    Raises:
        ConfigError: When the step's checkpoint is missing; writes no record.
    """
    if subject.role == "step" and not subject.checkpoint.is_dir():
        plan, known = subject.plan, list(map(str, stage_steps(subject.plan)))
        raise ConfigError(
            f"stages.{plan.name}: no checkpoint of {subject.label} under {plan.stage.checkpoints}"
            f"{did_you_mean(str(subject.step), known)}; the configured steps are {', '.join(known)}"
        )
    with _uncollected():
        import evaluation.scoring.job  # noqa: F401 - with torch and transformers

    record = make(SCORE, subject)
    if not scores_only:
        record = make(COLLECT, subject)
    if record.error is not None:
        report(record.error)
        return RECORDED
    print(subject.folder)
    return 0


@contextmanager
def _uncollected() -> Iterator[None]:
    """Pause garbage collection while libraries are imported: it takes a fifth of the time.

    What is imported stays, so later collections pass over it.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()


def _serve(stage: str, *, scores_only: bool) -> None:
    """Score the steps named on stdin, one per line.

    For each, write its exit code to stdout.
    """
    start_logging()
    plan = plan_stage(load_config(os.environ[CONFIG_VARIABLE]), stage)
    # The pipes keep descriptors of their own: 1 and 2 become each step's log, and anything that a library
    # prints would otherwise be read as an answer. Nothing but this loop reads the pipe of steps.
    steps, answers, errors = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w"), os.dup(2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for line in steps:
        step = int(line)
        _write_to(plan.step_log(step))
        score = partial(score_checkpoint, step_subject(plan, step), scores_only=scores_only)
        faults: list[GpuFault] = []
        code = exit_code(partial(_noting_faults, score, faults))
        sys.stdout.flush()
        os.dup2(errors, 1)
        os.dup2(errors, 2)
        if faults:  # CUDA accepts no more calls from this process: a new one scores the next step
            os._exit(code)
        gc.collect()  # frees the last model before the next one is loaded
        print(code, file=answers, flush=True)


def _noting_faults(score: Callable[[], int], faults: list[GpuFault]) -> int:
    try:
        return score()
    except GpuFault as fault:
        faults.append(fault)
        raise


def _write_to(path: Path) -> None:
    """Send all output to a file, including what Python prints when it crashes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)


if __name__ == "__main__":
    _serve(sys.argv[1], scores_only=SCORES_ONLY in sys.argv[2:])
