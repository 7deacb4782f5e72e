"""Checks what generating answers needs: programs and data."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from evaluation.doctor.caches import Caches
from evaluation.doctor.findings import Check, Finding
from evaluation.errors import EvaluationError
from evaluation.files import fingerprint
from evaluation.prefill.caches import check_cached_golds
from evaluation.prefill.provided import provider_of
from evaluation.settings.plan import StagePlan
from evaluation.settings.provided import ProviderTask
from evaluation.verification import nltk_data


def check_answers(plans: Sequence[StagePlan], caches: Caches) -> list[Check]:
    """Check what generating answers needs, for all stages that have generation tasks; no check without."""
    asked = [plan for plan in plans if plan.suite.generation_tasks]
    if not asked:
        return []
    parts = [f"{plan.name}: {', '.join(plan.suite.generation_tasks)}" for plan in asked]
    return [Check("answers", "; ".join(parts), tuple(_findings(asked, caches)))]


def _findings(plans: Sequence[StagePlan], caches: Caches) -> Iterator[Finding]:
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
                f"{plan.nltk_data} lacks NLTK's {', '.join(lacking)}; run `snakemake prefill`",
            )
            return
    yield from _golds(plans, caches)


def _golds(plans: Sequence[StagePlan], caches: Caches) -> Iterator[Finding]:
    """Yield a fault for each task whose verifier, changed after prefill, refuses a gold answer."""
    seen: set[tuple[Path, str]] = set()
    for plan in plans:
        for name, task in plan.suite.generation_tasks.items():
            folder = plan.cache_folder("tier5", name)
            key = folder, "" if isinstance(task, ProviderTask) else fingerprint(task.verifying)
            if isinstance(task, ProviderTask) or folder not in caches.metas or key in seen:
                continue
            seen.add(key)
            try:
                check_cached_golds(plan, name)
            except EvaluationError as error:
                yield Finding("fault", plan.name, str(error))


def _providers(plans: Sequence[StagePlan]) -> Iterator[Finding]:
    """Yield a fault for each provider that tasks need and that is not installed."""
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
