"""The steps of stages with `all` or `every: N`: those on disk that can be scored, and scored ones.

A step whose checkpoint was deleted after it was scored stays, as long as its scores are those that the
configuration asks for now. A checkpoint that is incomplete, or that somebody still writes to, waits for
the next run; a warning names it. A list of steps is taken as it is.
"""

import functools
import logging
from pathlib import Path

from evaluation.checkpoints.completeness import check_complete, check_whole
from evaluation.checkpoints.subjects import Subject, find_steps, step_subject
from evaluation.errors import CacheError, CheckpointError, IncompleteCheckpoint
from evaluation.flow.targets import SCORE, Targets
from evaluation.records import FOLDER, records_of
from evaluation.settings.config import Config
from evaluation.settings.planning import plan_stage
from evaluation.settings.requested_steps import is_requested
from evaluation.settings.steps import step_named

log = logging.getLogger(__name__)


def with_known_steps(config: Config, targets: Targets | None = None) -> Config:
    """Return the configuration with a list of steps for each stage that has some."""
    targets = targets or Targets()
    stages = {
        name: stage.model_copy(update={"steps": steps, "open_ended": True})
        for name, stage in config.stages.items()
        if not isinstance(stage.steps, tuple) and (steps := _known_steps(config, name, targets))
    }
    return config.model_copy(update={"stages": {**config.stages, **stages}})


def _known_steps(config: Config, name: str, targets: Targets) -> tuple[int, ...]:
    """Return a stage's steps in ascending order; none where they cannot be found, which its use reports."""
    stage = config.stages[name]
    try:
        on_disk = find_steps(Path(stage.checkpoints), stage.steps, stage.listed)
    except CheckpointError:
        on_disk = ()
    scored = _scored_steps(Path(stage.results or Path(config.results) / name))
    gone = [step for step in scored if step not in on_disk and is_requested(step, stage.steps)]
    if not on_disk and not gone:
        return ()
    plan = plan_stage(config, name)
    subjects = [step_subject(plan, step) for step in (*on_disk, *gone)]
    targets.look_at(subjects)
    kept = [s.step for s in subjects if s.step is not None and is_ready(s, targets)]
    return tuple(sorted(kept))


def _scored_steps(results: Path) -> list[int]:
    folders = {
        path.parents[1] for path in results.glob(f"by_checkpoint/step_*/{FOLDER}/{SCORE}-*.json")
    }
    steps = (step_named(folder.name.removeprefix("step_")) for folder in folders)
    return [step for step in steps if step is not None]


def is_ready(subject: Subject, targets: Targets) -> bool:
    """Return whether a checkpoint has scores, or is there and complete; a warning says why it is not."""
    try:
        is_scored = targets.score(subject).record is not None
    except CacheError:  # nothing can be said about its scores, and the run will end with this
        is_scored = bool(records_of(subject.folder, SCORE))
    if is_scored or not targets.state(subject):
        return is_scored
    check = check_whole if subject.plan.stage.command else check_complete
    try:
        check(subject.open())
    except (IncompleteCheckpoint, OSError) as error:
        _warn(subject.plan.name, str(error))
        return False
    except CheckpointError:  # its job records why it cannot be scored
        return True
    return True


@functools.cache
def _warn(plan_name: str, why: str) -> None:
    """Warn once, however often a configuration is read."""
    log.warning("stages.%s: left out until it is complete: %s", plan_name, why)
