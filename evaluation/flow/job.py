"""Scores checkpoints in one job: one process per GPU, each with its share of the steps.

As a program: the process of a GPU, with the stage and its steps as arguments.
"""

import gc
import logging
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from evaluation.checkpoints.config_files import configuration_file
from evaluation.checkpoints.subjects import Subject, stage_steps, step_subject
from evaluation.errors import (
    ConfigError,
    EvaluationError,
    GpuFault,
    ScoringError,
    did_you_mean,
    report,
)
from evaluation.flow.make import check_planned, make_score
from evaluation.flow.targets import SCORE, Targets
from evaluation.processes import THREADS, end_with_parent, exit_code, start_logging, usable_cores
from evaluation.records import RECORDED, records_of
from evaluation.scoring.gpus import VISIBLE, visible_names
from evaluation.settings.config import load_config
from evaluation.settings.plan import StagePlan
from evaluation.settings.planning import plan_stage
from evaluation.version import CONFIG_VARIABLE

log = logging.getLogger(__name__)


def score(subjects: Sequence[Subject], planned: str | None, config: Path) -> int:
    """Score checkpoints of a stage; return 0, or RECORDED if a record has an error.

    Args:
        planned: What the run has planned, as `check_planned` takes it.

    Raises:
        ConfigError: A checkpoint is missing; leaves no record.
        ScoringError: Some failed for another reason; raised once all others are done.
    """
    targets, plan = Targets(), subjects[0].plan
    for subject in subjects:
        _require(subject)
    targets.look_at(subjects)
    named = [targets.score(subject) for subject in subjects]
    check_planned(named, planned)
    lacking = [
        subject
        for subject, target in zip(subjects, named, strict=True)
        if target.record is None or target.record.error
    ]
    gpus = [] if plan.config.scoring.device == "cpu" else [*visible_names()][: len(lacking)]
    if len(gpus) > 1:
        os.environ[CONFIG_VARIABLE] = str(config.absolute())
        return _spread(plan, [subject.step or 0 for subject in lacking], gpus)
    return _score_each(lacking, targets, is_logged=len(lacking) > 1)


def _require(subject: Subject) -> None:
    is_there = configuration_file(subject.checkpoint) or records_of(subject.folder, SCORE)
    if subject.role == "step" and not is_there:
        plan, known = subject.plan, list(map(str, stage_steps(subject.plan)))
        raise ConfigError(
            f"stages.{plan.name}: no checkpoint of {subject.label} under {plan.stage.checkpoints}"
            f"{did_you_mean(str(subject.step), known)}; the configured steps are {', '.join(known)}"
        )


def _spread(plan: StagePlan, steps: Sequence[int], gpus: Sequence[str]) -> int:
    threads = str(max(1, usable_cores() // len(gpus)))
    command = [sys.executable, "-m", "evaluation.flow.job", plan.name]
    processes = [
        subprocess.Popen(
            [*command, *map(str, steps[number :: len(gpus)])],
            env={THREADS: threads, **os.environ, VISIBLE: gpu},
            preexec_fn=end_with_parent,
        )
        for number, gpu in enumerate(gpus)
    ]
    codes = {process.wait() for process in processes}
    if failed := codes - {0, RECORDED}:
        raise ScoringError(
            f"stages.{plan.name}: some of steps {', '.join(map(str, steps))} failed (exit codes "
            f"{', '.join(map(str, sorted(failed)))}); the reasons stand above and in "
            f"{plan.score_log(steps[0]).parent}. The others are scored: run again"
        )
    return max(codes)


def _score_each(subjects: Sequence[Subject], targets: Targets, *, is_logged: bool) -> int:
    """Score checkpoints one after the other, each with a log of its own where a job scores several."""
    code, failed = 0, list[str]()
    for subject in subjects:
        with _logged(subject.log if is_logged else None):
            try:
                record = make_score(subject, targets.score(subject))
            except EvaluationError as error:
                if len(subjects) == 1 or isinstance(error, GpuFault):  # no other can be scored
                    raise
                report(str(error))
                failed.append(f"{subject.label}: {error}")
                continue
            if record.error is not None:
                report(record.error)
                code = RECORDED
            else:
                print(subject.folder, flush=True)
        gc.collect()  # frees the last model before the next one is loaded
    if failed:
        raise ScoringError(f"stages.{subjects[0].plan.name}: {'; '.join(failed)}")
    return code


@contextmanager
def _logged(path: Path | None) -> Iterator[None]:
    """Send all output to a file as well, including what Python prints when it crashes."""
    if path is None:
        yield
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    before = os.dup(1), os.dup(2)
    with open(path, "wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        sys.stdout.flush()
        for number, descriptor in enumerate(before, 1):
            os.dup2(descriptor, number)
            os.close(descriptor)


def _work(stage: str, steps: Sequence[str]) -> int:
    start_logging()
    plan = plan_stage(load_config(os.environ[CONFIG_VARIABLE]), stage)
    subjects = [step_subject(plan, int(step)) for step in steps]
    return _score_each(subjects, Targets(), is_logged=True)


if __name__ == "__main__":
    sys.exit(exit_code(lambda: _work(sys.argv[1], sys.argv[2:])))
