"""A provider's task as prompts and documents: what it says is taken, and recorded.

Before anything is generated, the provider judges a few of its own golds: a metric that fails on them would
fail on every answer. It also judges texts out of its documents, which show metrics that are no credit from 0
to 1, such as BLEU, where a task has no golds.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from evaluation.errors import SourceError
from evaluation.prefill.generation.recipe import TaskPrompt
from evaluation.prefill.providers import provider_of, rendering_request
from evaluation.providers.program import Provider
from evaluation.providers.render import Document, Rendered, TaskInfo, render
from evaluation.providers.score import Case, Limits, Outcome, score, verdict_of
from evaluation.settings.plan import StagePlan
from evaluation.settings.probes import Message
from evaluation.settings.provided import ProviderTask
from evaluation.verification.verdicts import shortened

TRIED = 32
"""Golds that are judged at prefill."""
QUOTED = 8
"""Documents whose texts are judged as well, and texts of each."""


@dataclass(frozen=True)
class ProvidedPrompts:
    """Prompts in order, how many there are without the limit, what the provider said and is recorded."""

    prompts: list[TaskPrompt]
    there: int
    info: TaskInfo
    recorded: dict[str, Any]
    max_new_tokens: int


def provided_prompts(plan: StagePlan, name: str, task: ProviderTask) -> ProvidedPrompts:
    """Raises SourceError, naming the task, for whatever the provider cannot do."""
    key, provider = f"generation_tasks.{name}", provider_of(plan, task)
    rendered = render(provider, key, rendering_request(plan, task))
    room = task.max_new_tokens or rendered.info.max_new_tokens
    if room is None:
        raise SourceError(
            f"{key}: {provider.title} does not say how long an answer of {task.task} may be; set "
            "`max_new_tokens`"
        )
    golds, others = _judged(plan, provider, task, rendered)
    _check_golds(key, task, golds)
    metrics = _metrics(key, task, rendered.info.metrics, [*golds, *others])
    recorded = {
        **rendered.info.model_dump(exclude={"documents", "metrics", "read"}),
        "name": task.provider,
        "max_new_tokens": room,
        "metrics": metrics,
        "golds": {metric: _share(metric, golds) for metric in metrics},
    }
    prompts = [_prompt(one, rendered) for one in rendered.documents]
    return ProvidedPrompts(prompts, rendered.info.documents, rendered.info, recorded, room)


def limits_of(plan: StagePlan) -> Limits:
    return Limits(plan.config.verification.seconds, plan.config.verification.memory_mb)


def _prompt(document: Document, rendered: Rendered[Document]) -> TaskPrompt:
    turns: tuple[Message, ...] | str = document.prompt or ""
    if document.messages is not None:
        turns = tuple(Message(role=m.role, content=m.content) for m in document.messages)
    parts = len(rendered.info.num_fewshot)
    strata = {"part": document.part} if parts > 1 else {}
    return TaskPrompt(document.id, turns, document.document, strata)


def _judged(
    plan: StagePlan, provider: Provider, task: ProviderTask, rendered: Rendered[Document]
) -> tuple[list[Outcome], list[Outcome]]:
    """Outcomes of golds, and of texts out of documents."""
    chosen = rendered.documents[:: math.ceil(len(rendered.documents) / TRIED)]
    golds: list[Case] = [(one.document, one.gold or "") for one in chosen]
    quotes: list[Case] = [(one.document, text) for one in chosen[:QUOTED] for text in _quotes(one)]
    request = rendering_request(plan, task) | {"task_files": rendered.info.task_files}
    found = [one for _, one in score(provider, request, [*golds, *quotes], limits_of(plan))]
    return found[: len(golds)], found[len(golds) :]


def _quotes(document: Document) -> list[str]:
    """Texts in a document, right answers and wrong ones among them."""
    return list(islice(dict.fromkeys(_texts(document.document)), QUOTED))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        yield from chain.from_iterable(map(_texts, inner))


def _check_golds(key: str, task: ProviderTask, golds: Sequence[Outcome]) -> None:
    failed = [outcome.reason for outcome in golds if outcome.scores is None]
    if failed:
        raise SourceError(
            f"{key}: the metrics of {task.task} fail on {len(failed)} of {len(golds)} of its own "
            f"gold answers (the first: {shortened(failed[0])}); choose another task"
        )


def _metrics(
    key: str, task: ProviderTask, better: Mapping[str, bool], outcomes: Sequence[Outcome]
) -> list[str]:
    """Those that can be reported: of which more is better, and which give credit from 0 to 1."""
    scored = [outcome for outcome in outcomes if outcome.scores is not None]
    given = dict.fromkeys(metric for outcome in scored for metric in outcome.scores or {})
    usable = [
        metric
        for metric in given
        if better.get(metric, better.get(metric.partition(",")[0], True))
        and all(verdict_of(metric, outcome, "").credit is not None for outcome in scored)
    ]
    if not usable:
        raise SourceError(
            f"{key}: {task.task} has no metric from 0 to 1 of which more is better; it has "
            f"{', '.join(given) or 'none'}"
        )
    for metric in _asked(task):
        if metric not in usable:
            why = (
                "is not from 0 to 1, or less of it is better" if metric in given else "is not there"
            )
            raise SourceError(
                f"{key}: no metric {metric!r} of {task.task} can be reported, as it {why}; there are "
                f"{', '.join(usable)}"
            )
    return usable


def _asked(task: ProviderTask) -> Iterator[str]:
    yield from task.metrics
    if task.primary is not None:
        yield task.primary


def _share(metric: str, golds: Sequence[Outcome]) -> float:
    """Of golds that are right by the metric, as far as it reads them without a format around them."""
    credits = [verdict_of(metric, outcome, "").credit or 0.0 for outcome in golds]
    return math.fsum(credits) / len(credits)
