"""A provider's task as prompts and documents: what it says is taken, and recorded.

Before anything is generated, the provider judges a few of its own golds: a metric that fails on them,
or gives what is no credit, would fail on every answer.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from evaluation.errors import SourceError
from evaluation.prefill.generation.recipe import TaskPrompt
from evaluation.prefill.providers import provider_of
from evaluation.providers.program import Provider
from evaluation.providers.render import Document, Rendered, Said, render
from evaluation.providers.score import Case, Limits, Outcome, score, verdict_of
from evaluation.settings.plan import StagePlan
from evaluation.settings.probes import Message
from evaluation.settings.provided import ProviderTask
from evaluation.verification.verdicts import shortened

TRIED = 32
"""Golds that are judged at prefill."""


@dataclass(frozen=True)
class ProvidedPrompts:
    """Prompts in order, how many there are without the limit, what the provider said and is recorded."""

    prompts: list[TaskPrompt]
    there: int
    said: Said
    recorded: dict[str, Any]
    max_new_tokens: int


def provided_prompts(plan: StagePlan, name: str, task: ProviderTask) -> ProvidedPrompts:
    """Raises SourceError, naming the task, for whatever the provider cannot do."""
    key, provider = f"generation_tasks.{name}", provider_of(plan, task)
    rendered = render(provider, key, request_of(plan, task))
    room = task.max_new_tokens or rendered.said.max_new_tokens
    if room is None:
        raise SourceError(
            f"{key}: {provider.title} does not say how long an answer of {task.task} may be; set "
            "`max_new_tokens`"
        )
    golds = _judged_golds(plan, provider, task, rendered.documents)
    metrics = _metrics(key, task, rendered, golds)
    recorded = {
        **rendered.said.model_dump(exclude={"documents", "metrics", "read"}),
        "name": task.provider,
        "max_new_tokens": room,
        "metrics": metrics,
        "golds": {metric: _share(metric, golds) for metric in metrics},
    }
    prompts = [_prompt(one, rendered) for one in rendered.documents]
    return ProvidedPrompts(prompts, rendered.said.documents, rendered.said, recorded, room)


def request_of(plan: StagePlan, task: ProviderTask) -> dict[str, Any]:
    """What the provider's program is asked."""
    keys = {"task", "chat", "num_fewshot", "limit"}
    return {**task.model_dump(include=keys), "mirrors": dict(plan.config.mirrors)}


def limits_of(plan: StagePlan) -> Limits:
    return Limits(plan.config.verification.seconds, plan.config.verification.memory_mb)


def _prompt(document: Document, rendered: Rendered[Document]) -> TaskPrompt:
    turns: tuple[Message, ...] | str = document.prompt or ""
    if document.messages is not None:
        turns = tuple(Message(role=m.role, content=m.content) for m in document.messages)
    parts = len(rendered.said.num_fewshot)
    strata = {"part": document.part} if parts > 1 else {}
    return TaskPrompt(document.id, turns, document.document, strata)


def _judged_golds(
    plan: StagePlan, provider: Provider, task: ProviderTask, documents: Sequence[Document]
) -> list[tuple[Case, Outcome]]:
    chosen = documents[:: math.ceil(len(documents) / TRIED)]
    cases: list[Case] = [(one.document, one.gold or "") for one in chosen]
    outcomes = score(provider, request_of(plan, task), cases, limits_of(plan))
    return [(cases[number], outcome) for number, outcome in outcomes]


def _metrics(
    key: str,
    task: ProviderTask,
    rendered: Rendered[Document],
    golds: Sequence[tuple[Case, Outcome]],
) -> list[str]:
    """Those that can be reported: of which more is better, and which give credit from 0 to 1."""
    failed = [outcome.reason for _, outcome in golds if outcome.scores is None]
    if failed:
        raise SourceError(
            f"{key}: the metrics of {task.task} fail on {len(failed)} of {len(golds)} of its own "
            f"gold answers (the first: {shortened(failed[0])}); choose another task"
        )
    given = dict.fromkeys(m for _, outcome in golds for m in outcome.scores or {})
    better = rendered.said.metrics
    usable = [
        metric
        for metric in given
        if better.get(metric, better.get(metric.partition(",")[0], True))
        and all(verdict_of(metric, outcome, "").credit is not None for _, outcome in golds)
    ]
    if not usable:
        raise SourceError(
            f"{key}: {task.task} has no metric from 0 to 1 of which more is better; it has "
            f"{', '.join(given) or 'none'}"
        )
    for metric in _asked(task):
        if metric not in usable:
            raise SourceError(
                f"{key}: no metric {metric!r} of {task.task} can be reported; there are "
                f"{', '.join(usable)}"
            )
    return usable


def _asked(task: ProviderTask) -> Iterator[str]:
    yield from task.metrics
    if task.primary is not None:
        yield task.primary


def _share(metric: str, golds: Sequence[tuple[Case, Outcome]]) -> float:
    """Of golds that are right by the metric, as far as it reads them without a format around them."""
    credits = [verdict_of(metric, outcome, "").credit or 0.0 for _, outcome in golds]
    return math.fsum(credits) / len(credits)
