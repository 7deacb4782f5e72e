"""Find a stage's steps, also those whose checkpoint was deleted after it was scored.

If `steps` is a list, it counts whether its steps are on disk or not. `all` and `every: N` mean the
steps on disk, and deleted ones that were scored as the configuration asks for now. Deleted steps that
were scored otherwise can neither be compared with the others nor scored again, so they are left out.
"""

from pathlib import Path

from evaluation.checkpoints.subjects import Subject, find_steps, step_subject
from evaluation.dependencies.outdated import Outdated
from evaluation.dependencies.steps import SCORE
from evaluation.errors import CheckpointError
from evaluation.records import FOLDER
from evaluation.settings.config import Config
from evaluation.settings.planning import plan_stage
from evaluation.settings.requested_steps import is_requested
from evaluation.settings.steps import step_named


def with_known_steps(config: Config) -> Config:
    """Return a copy of the configuration with a list of steps for each stage that has some on disk."""
    stages = {
        name: stage.model_copy(
            update={
                "steps": steps,
                "open_ended": stage.open_ended or not isinstance(stage.steps, tuple),
            }
        )
        for name, stage in config.stages.items()
        if (steps := known_steps(config, name))
    }
    return config.model_copy(update={"stages": {**config.stages, **stages}})


def known_steps(config: Config, name: str) -> tuple[int, ...]:
    """Return a stage's steps, deleted ones among them.

    Returns:
        A configured list as it is, otherwise ascending steps; empty while there is no checkpoint.
    """
    stage = config.stages[name]
    try:
        steps = find_steps(Path(stage.checkpoints), stage.steps, stage.listed)
    except CheckpointError:  # reported when this stage is used; a command may use another
        steps = ()
    if isinstance(stage.steps, tuple):
        return steps
    results = Path(stage.results or Path(config.results) / name)
    others = [step for step in _steps_with_results(results) if is_requested(step, stage.steps)]
    absent = [step for step in others if step not in steps]
    if not absent:
        return steps
    plan = plan_stage(config, name)
    outdated = Outdated({name: plan})
    kept = [step for step in absent if is_retained(step_subject(plan, step), outdated)]
    return tuple(sorted([*steps, *kept]))


def is_retained(subject: Subject, outdated: Outdated) -> bool:
    """Return whether only the scores of a checkpoint are left, which are as requested."""
    return outdated.has_lost_files(subject) and not outdated(SCORE, subject)


def _steps_with_results(results: Path) -> list[int]:
    """Return the steps that have a record of scores; other outputs could be made again."""
    paths = results.glob(f"by_checkpoint/step_*/{FOLDER}/{SCORE}.json")
    steps = (step_named(path.parents[1].name.removeprefix("step_")) for path in paths)
    return [step for step in steps if step is not None]
