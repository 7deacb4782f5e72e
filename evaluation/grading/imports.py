"""Import a file of completions for a checkpoint of a stage, or forget such an import.

The next run scores the checkpoint again, which takes the completions from the store: so the records of
its scores are removed, in every stage that evaluates it.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from evaluation.checkpoints.contents import Contents
from evaluation.checkpoints.subjects import (
    Subject,
    bridge_subject,
    stage_steps,
    step_subject,
    steps_so_far,
)
from evaluation.dependencies.caches import CacheEntry, CacheStates, check_current
from evaluation.dependencies.steps import SCORE
from evaluation.errors import ConfigError
from evaluation.prefill.caches import read_prompts
from evaluation.records import record_path
from evaluation.scoring.completion_files import read_completions
from evaluation.scoring.imported_completions import (
    forget_import,
    import_completions,
    origin_of_file,
)
from evaluation.settings.plan import StagePlan
from evaluation.settings.provided import settled_task
from evaluation.store import ScoreStore
from evaluation.wording import no_such

Plans = Mapping[str, StagePlan]


def import_file(
    plans: Plans,
    plan: StagePlan,
    checkpoint: str,
    task: str,
    path: Path,
    engine: tuple[str | None, str | None],
) -> int:
    """Store completions of a file as a checkpoint's, and return how many are stored.

    Args:
        checkpoint: A step's number, or `bridge`.
        path: The file, in one of the formats of `completion_files`.
        engine: Its name and version, where the user gives them.

    Raises:
        ConfigError: The stage has no such checkpoint.
        CacheError: The task is not prefilled as the configuration describes it now.
        ResultsError: The file does not hold completions of the task.
        ScoringError: There are fewer or more completions than the task asks for.
    """
    subject = _subject(plans, plan, checkpoint)
    folder = plan.cache_folder("tier5", task)
    check_current(CacheStates(), CacheEntry(plan, "tier5", task, folder))
    cache = read_prompts(folder)
    given = read_completions(path, {prompt.id: prompt.prompt for prompt in cache.prompts})
    settled = settled_task(plan.suite.generation_tasks[task], cache.meta)
    store, origin = _store(subject), origin_of_file(path, given, *engine)
    stored = import_completions(plan, store, task, settled, cache, given, origin)
    store.pack()
    _score_again(plans, subject)
    return stored


def forget_completions(plans: Plans, plan: StagePlan, checkpoint: str, task: str) -> None:
    """Let a task's completions be generated again.

    Args:
        checkpoint: A step's number, or `bridge`.

    Raises:
        ConfigError: The stage has no such checkpoint, or nothing was imported for it.
    """
    subject = _subject(plans, plan, checkpoint)
    if not forget_import(_store(subject), task):
        raise ConfigError(f"{subject.label} of {plan.name}: no completions of {task} were imported")
    _score_again(plans, subject)


def _subject(plans: Plans, plan: StagePlan, checkpoint: str) -> Subject:
    if checkpoint == "bridge":
        return bridge_subject(plan, plans)
    steps = {str(step): step for step in stage_steps(plan)}
    if checkpoint not in steps:
        what = no_such("checkpoint", checkpoint, [*steps, "bridge"])
        raise ConfigError(f"stages.{plan.name}: {what}")
    return step_subject(plan, steps[checkpoint])


def _store(subject: Subject) -> ScoreStore:
    plan = subject.plan
    contents = Contents(Path(plan.config.results))
    return ScoreStore(plan.scores, contents.identity(subject.open()))


def _score_again(plans: Plans, subject: Subject) -> None:
    """Remove the records of a checkpoint's scores, by whatever stage it is evaluated."""
    place = os.path.realpath(subject.checkpoint)
    for plan in plans.values():
        subjects = [step_subject(plan, step) for step in steps_so_far(plan)]
        if plan.stage.bridge is not None:
            subjects.append(bridge_subject(plan, plans))
        for other in subjects:
            if os.path.realpath(other.checkpoint) == place:
                record_path(other.folder, SCORE).unlink(missing_ok=True)
