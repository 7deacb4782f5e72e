"""What generated answers need: time, programs, data."""

from collections.abc import Iterator, Sequence

from evaluation.checkpoints.subjects import Subject
from evaluation.dependencies.estimates import estimate_answers
from evaluation.doctor.caches import Caches
from evaluation.doctor.findings import Check, Finding
from evaluation.errors import EvaluationError
from evaluation.prefill.caches import FETCH
from evaluation.prefill.providers import provider_of
from evaluation.settings.plan import StagePlan
from evaluation.settings.provided import ProviderTask
from evaluation.verification import nltk_data


def check_answers(
    plans: Sequence[StagePlan], subjects: Sequence[Subject], caches: Caches
) -> list[Check]:
    """A line for all stages that have generation tasks; none if no stage has."""
    asked = [plan for plan in plans if plan.suite.generation_tasks]
    if not asked:
        return []
    parts = [estimate_answers(plan, subjects, caches.metas.get) for plan in asked]
    return [Check("answers", "; ".join(parts), tuple(_findings(asked)))]


def _findings(plans: Sequence[StagePlan]) -> Iterator[Finding]:
    if plans[0].config.generation.engine == "vllm":
        from evaluation.scoring.vllm.engine import find_vllm

        try:
            find_vllm(plans[0].config.generation)
        except EvaluationError as error:
            yield Finding("fault", "", str(error))
    yield from _providers(plans)
    for plan in plans:
        needed = nltk_data.needed_by_tasks(plan.suite.generation_tasks.values())
        lacking = nltk_data.missing(plan.nltk_data, needed)
        if lacking:
            yield Finding(
                "fault",
                plan.name,
                f"{plan.nltk_data} lacks NLTK's {', '.join(lacking)}; run `{FETCH}`",
            )
            return


def _providers(plans: Sequence[StagePlan]) -> Iterator[Finding]:
    """Each provider that is asked for and not installed, once."""
    missing: dict[str, str] = {}
    for plan in plans:
        for task in plan.suite.generation_tasks.values():
            if isinstance(task, ProviderTask):
                try:
                    provider_of(plan, task).check()
                except EvaluationError as error:
                    missing.setdefault(task.provider, str(error))
    for name, sentence in missing.items():
        yield Finding("fault", name, sentence)
