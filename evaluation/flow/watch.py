"""A loop around Snakemake: it evaluates checkpoints as a training saves them, and waits for the next."""

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluation.checkpoints.subjects import Subject, stage_subjects
from evaluation.errors import CacheError, EvaluationError
from evaluation.flow.run import WAITING
from evaluation.flow.steps import is_ready, with_known_steps
from evaluation.flow.targets import Targets
from evaluation.settings.config import load_config
from evaluation.settings.plan import StagePlan
from evaluation.settings.planning import named_stage, plan_stages
from evaluation.version import ROOT, SNAKEFILE

log = logging.getLogger(__name__)

PATIENCE = 60.0
"""Seconds that Snakemake has to end its jobs when it is asked to stop."""


@dataclass(frozen=True)
class Watched:
    """Which stages are watched and how: arguments of Snakemake, seconds between two looks, when it ends.

    `then` is a shell command that runs after each round of Snakemake.
    """

    config: Path
    stage: str | None
    arguments: Sequence[str]
    interval: float
    until_step: int | None = None
    once: bool = False
    then: str | None = None


def watch(watched: Watched, sleep: Callable[[float], None] = time.sleep) -> int:
    """Evaluate what is ready, again and again; return the exit code of the last Snakemake that ran.

    It ends when all steps of a list, or `until_step` or a later one, are evaluated in every stage.

    Raises:
        EvaluationError: The configuration cannot be used, or the caches have to be prefilled.
    """
    code = 0
    while True:
        ready, is_done = _look(watched)
        if ready:
            log.info("%s: Snakemake starts", "; ".join(ready))
            code = _snakemake(watched)
            if watched.then and (failed := subprocess.run(watched.then, shell=True).returncode):
                log.warning("`%s` ended with exit code %d", watched.then, failed)
            _, is_done = _look(watched)
        if watched.once or is_done:
            return code
        sleep(watched.interval)


def _look(watched: Watched) -> tuple[list[str], bool]:
    """Return the checkpoints that can be evaluated now, and whether no other is waited for."""
    targets, ready, is_done = Targets(), list[str](), True
    plans = plan_stages(with_known_steps(load_config(watched.config), targets))
    if watched.stage is not None:
        named_stage(plans, watched.stage, watched.config)
    for plan in plans.values() if watched.stage is None else [plans[watched.stage]]:
        subjects = list(_subjects(plan, plans))
        targets.look_at(subjects)
        evaluated = [s for s in subjects if targets.collect(s).record is not None]
        lacking = [s for s in subjects if s not in evaluated]
        ready += [f"{plan.name} {s.label}" for s in lacking if is_ready(s, targets)]
        is_done = is_done and _is_done(plan, evaluated, watched.until_step)
    return ready, is_done


def _subjects(plan: StagePlan, plans: dict[str, StagePlan]) -> Iterator[Subject]:
    """Yield a stage's checkpoints; none before training has saved the first."""
    try:
        yield from stage_subjects(plan, plans) if isinstance(plan.stage.steps, tuple) else ()
    except CacheError:
        raise
    except EvaluationError as error:
        log.info("%s", error)


def _is_done(plan: StagePlan, evaluated: Sequence[Subject], until_step: int | None) -> bool:
    steps = {subject.own_step or 0 for subject in evaluated if subject.role == "step"}
    if until_step is not None:
        return any(step >= until_step for step in steps)
    wanted = plan.stage.steps
    return not plan.stage.open_ended and isinstance(wanted, tuple) and steps.issuperset(wanted)


def _snakemake(watched: Watched) -> int:
    """Run Snakemake, which stops its jobs if this process is stopped."""
    command = [sys.executable, "-m", "snakemake", *([watched.stage] if watched.stage else [])]
    command += ["-s", str(SNAKEFILE), "--configfile", str(watched.config), *watched.arguments]
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path, WAITING: "1"}
    # In a session of its own: Ctrl-C reaches only this process, which passes it on once.
    child = subprocess.Popen(command, env=environment, start_new_session=True)
    try:
        return child.wait()
    finally:
        if child.poll() is None:
            child.send_signal(signal.SIGINT)
            child.wait(PATIENCE)
