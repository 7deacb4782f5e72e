"""A provider's tasks of ranked choices as questions; and where a stage has its providers."""

from evaluation.prefill.questions import Question
from evaluation.providers.program import Provider
from evaluation.providers.render import Choice, Said, render_choices
from evaluation.settings.plan import StagePlan
from evaluation.settings.provided import ProviderTask
from evaluation.settings.suites import ProviderChoices


def provider_of(plan: StagePlan, task: ProviderTask | ProviderChoices) -> Provider:
    python = plan.config.providers.python(task.provider)
    return Provider(task.provider, python, task.version, plan.nltk_data)


def provided_questions(
    plan: StagePlan, name: str, task: ProviderChoices
) -> tuple[list[Question], Said]:
    """The items, and what the provider says of the task.

    Raises SourceError, naming the task, for whatever the provider cannot do.
    """
    keys = {"task", "num_fewshot", "limit"}
    asked = {**task.model_dump(include=keys), "chat": False, "mirrors": dict(plan.config.mirrors)}
    found = render_choices(provider_of(plan, task), f"tasks.{name}", asked)
    several = len(found.said.num_fewshot) > 1
    questions = [_question(one, one.part if several else None) for one in found.documents]
    return questions, found.said


def _question(one: Choice, part: str | None) -> Question:
    alone = None if one.unconditional is None else tuple(one.unconditional)
    return Question(one.id, None, part, one.right, tuple(one.choices), alone)
