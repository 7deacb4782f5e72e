"""A provider's tasks of ranked choices as questions; where a stage has its providers, and what it asks them."""

import os
from typing import Any

from evaluation.prefill.questions import Question
from evaluation.providers.program import Provider
from evaluation.providers.render import RankedQuestion, TaskInfo, render_choices
from evaluation.settings.plan import StagePlan
from evaluation.settings.provided import ProviderTask
from evaluation.settings.suites import ProviderChoices
from evaluation.settings.verifiers import Provided


def provider_of(plan: StagePlan, task: ProviderTask | ProviderChoices | Provided) -> Provider:
    python = plan.config.providers.python(task.provider)
    return Provider(task.provider, python, task.version, plan.nltk_data)


def rendering_request(plan: StagePlan, task: ProviderTask | ProviderChoices) -> dict[str, Any]:
    """What a provider's program is asked to have a task rendered."""
    asked = task.model_dump(include={"task", "chat", "num_fewshot", "limit"})
    where = _absolute(task.include_path)
    return {"chat": False, **asked, "include_path": where, "mirrors": dict(plan.config.mirrors)}


def scoring_request(task: Provided) -> dict[str, Any]:
    """The same to have completions judged."""
    where = _absolute(task.include_path)
    return {"task": task.task, "include_path": where, "task_files": task.task_files}


def _absolute(path: str | None) -> str | None:
    """The program is started in a folder of its own."""
    return None if path is None else os.path.abspath(path)


def provided_questions(
    plan: StagePlan, name: str, task: ProviderChoices
) -> tuple[list[Question], TaskInfo]:
    """The items, and what the provider says of the task.

    Raises SourceError, naming the task, for whatever the provider cannot do.
    """
    asked = rendering_request(plan, task)
    found = render_choices(provider_of(plan, task), f"tasks.{name}", asked)
    several = len(found.info.num_fewshot) > 1
    questions = [_question(one, one.part if several else None) for one in found.documents]
    return questions, found.info


def _question(one: RankedQuestion, part: str | None) -> Question:
    alone = None if one.unconditional is None else tuple(one.unconditional)
    return Question(one.id, None, part, one.right, tuple(one.choices), alone)
