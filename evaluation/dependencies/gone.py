"""Steps whose checkpoint the trainer has deleted since it was scored: their results stay.

Where `steps` is a list, its steps are a stage's whether they are on disk or not. `all` and `every: N`
mean those on disk, and those that are gone from it but scored as the configuration asks for now. What
was scored otherwise can neither be shown beside the others nor scored again, so it is left out.
"""

import re
from pathlib import Path

from evaluation.checkpoints.discovery import configuration_file, find_steps
from evaluation.checkpoints.subjects import Subject, step_subject
from evaluation.dependencies.outdated import Outdated
from evaluation.errors import CheckpointError
from evaluation.settings.config import Config, Every
from evaluation.settings.plan import plan_stage


def with_known_steps(config: Config) -> Config:
    """The configuration with a list of steps for each stage; as it is where there are none yet.

    Raises ConfigError where a stage cannot be resolved.
    """
    stages = {
        name: stage.model_copy(update={"steps": steps})
        for name, stage in config.stages.items()
        if (steps := known_steps(config, name))
    }
    return config.model_copy(update={"stages": {**config.stages, **stages}})


def known_steps(config: Config, name: str) -> tuple[int, ...]:
    """A stage's steps, gone ones among them; none as long as there is no checkpoint."""
    stage = config.stages[name]
    try:
        found = find_steps(Path(stage.checkpoints), stage.steps)
    except CheckpointError:  # said when the stage is asked for; another one may be
        found = ()
    if isinstance(stage.steps, tuple):
        return found
    every = stage.steps.every if isinstance(stage.steps, Every) else 1
    results = Path(stage.results or Path(config.results) / name)
    others = [step for step in _steps_with_results(results) if step % every == 0]
    absent = [step for step in others if step not in found]
    if not absent:
        return found
    plan = plan_stage(config, name)
    outdated = Outdated({name: plan})
    subjects = [step_subject(plan, step) for step in absent]
    kept = [s for s, one in zip(absent, subjects, strict=True) if _is_kept(one, outdated)]
    return tuple(sorted([*found, *kept]))


def is_gone(checkpoint: Path) -> bool:
    return configuration_file(checkpoint) is None


def _is_kept(subject: Subject, outdated: Outdated) -> bool:
    return is_gone(subject.checkpoint) and not outdated.score(subject)


def _steps_with_results(results: Path) -> list[int]:
    """Of the folders that hold a record, be it of what became of it."""
    found = results.glob("by_checkpoint/step_*/.made/collect.json")
    names = [path.parents[1].name.removeprefix("step_") for path in found]
    return [int(name) for name in names if re.fullmatch(r"0|[1-9]\d*", name)]
