"""What generating and verifying answers will take, before any of it is begun."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evaluation.checkpoints.subjects import Subject
from evaluation.doctor.caches import Caches
from evaluation.doctor.findings import Check, Finding
from evaluation.errors import EvaluationError
from evaluation.prefill.caches import FETCH
from evaluation.prefill.providers import provider_of
from evaluation.settings.plan import StagePlan
from evaluation.settings.provided import ProviderTask, judged_task
from evaluation.settings.tiers import TIERS
from evaluation.verification import nltk_data


@dataclass(frozen=True)
class Work:
    """Completions of one checkpoint, and the tokens that they have at most."""

    completions: int
    tokens: int


def check_answers(
    plans: Sequence[StagePlan], subjects: Sequence[Subject], caches: Caches
) -> list[Check]:
    """A line for all stages that have generation tasks; none if no stage has."""
    asked = [plan for plan in plans if plan.suite.generation_tasks]
    if not asked:
        return []
    parts = [_estimate(plan, subjects, caches) for plan in asked]
    return [Check("answers", "; ".join(parts), tuple(_findings(asked)))]


def _estimate(plan: StagePlan, subjects: Sequence[Subject], caches: Caches) -> str:
    work = _work(plan, caches)
    count = sum(subject.plan.name == plan.name for subject in subjects)
    if work is None:
        return f"{plan.name}: not prefilled"
    text = (
        f"{count} checkpoints × {work.completions:,} completions, {work.tokens:,} tokens at most in "
        "all of one"
    )
    speed = _last_speed(plan)
    if speed is None:
        return f"{plan.name}: {text}"
    hours = count * work.tokens / speed / 3600
    return f"{plan.name}: at most {hours:,.1f} h at the last {speed:,.0f} tokens/s, {text}"


def _work(plan: StagePlan, caches: Caches) -> Work | None:
    """None where a task is not prefilled."""
    completions = tokens = 0
    for name, task in plan.suite.generation_tasks.items():
        meta = caches.metas.get(plan.generation_folder(name))
        if meta is None:
            return None
        count = int(meta["items"]["used"]) * task.sampling.n
        completions += count
        tokens += count * judged_task(task, meta).max_new_tokens
    return Work(completions, tokens)


def _last_speed(plan: StagePlan) -> float | None:
    """Tokens per second when a checkpoint of the stage was last asked; None if none was."""
    name = TIERS["tier5"].summary_file
    files = [*plan.results.glob(f"by_checkpoint/*/{name}"), *plan.results.glob(f"bridge/{name}")]
    for path in sorted(files, key=lambda file: -file.stat().st_mtime):
        try:
            speed = json.loads(path.read_text(encoding="utf-8")).get("tokens_per_second")
        except (OSError, ValueError, AttributeError):  # what is damaged tells no speed
            continue
        if isinstance(speed, int | float) and speed > 0:
            return float(speed)
    return None


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
