"""Tasks of a provider: as questions of ranked choices, or as prompts and documents.

Before anything is generated, the provider verifies a few of its own gold answers: a metric that fails on
them would fail on every answer. It also verifies texts from its documents: where a task has no gold
answers, they reveal metrics that give no credit from 0 to 1, such as BLEU.
"""

import logging
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import Any

from evaluation.errors import SourceError
from evaluation.prefill.clusters import provided_clusters
from evaluation.prefill.questions import Question, TaskPrompt, TaskPrompts
from evaluation.prefill.row_identity import question_identity, row_identity
from evaluation.providers.program import Provider
from evaluation.providers.render import Document, RankedQuestion, Rendered, TaskInfo, render
from evaluation.providers.score import Case, CaseLimits, CaseOutcome, score, verdict_of
from evaluation.settings.plan import StagePlan
from evaluation.settings.provided import ProviderChoices, ProviderTask
from evaluation.settings.suites import Message
from evaluation.settings.verifiers import Provided
from evaluation.verification.verdicts import shortened

log = logging.getLogger(__name__)

TRIED = 32
"""Gold answers that are verified at prefill."""

QUOTED = 8
"""Documents whose texts are verified as well, and texts of each document."""


def provider_of(plan: StagePlan, task: ProviderTask | ProviderChoices | Provided) -> Provider:
    """Return the provider of a task or verifier, with the interpreter and version configured."""
    python = plan.config.providers.python(task.provider)
    return Provider(task.provider, python, task.version, plan.nltk_data)


def _rendering_request(plan: StagePlan, task: ProviderTask | ProviderChoices) -> dict[str, Any]:
    """Return the request by which a provider's program renders a task."""
    asked = task.model_dump(include={"task", "chat", "num_fewshot", "limit"})
    return {
        "chat": False,
        "mirrors": dict(plan.config.mirrors),
        **asked,
        "include_path": _absolute(task.include_path),
    }


def scoring_request(task: Provided) -> dict[str, Any]:
    """Return the request, ready for JSON, by which a provider's program verifies completions."""
    asked = task.model_dump(include={"task", "task_files"})
    return {**asked, "include_path": _absolute(task.include_path)}


def _absolute(path: str | None) -> str | None:
    """Make a path absolute, as the program is started in a folder of its own."""
    return None if path is None else os.path.abspath(path)


def provided_questions(
    plan: StagePlan, name: str, task: ProviderChoices
) -> tuple[list[Question], TaskInfo]:
    """Return a task's questions in order, and the provider's meta.json of the task.

    Raises:
        SourceError: The provider cannot render the task; names the task.
    """
    request = _rendering_request(plan, task)
    rendered = render(provider_of(plan, task), f"tasks.{name}", request, RankedQuestion)
    if task.kind == "ranked" and any(len(document.choices) < 2 for document in rendered.documents):
        raise SourceError(
            f"tasks.{name}: {task.task} scores only the right answer, so that nothing is ranked; set "
            "`kind: gold`"
        )
    several = len(rendered.info.num_fewshot) > 1
    fields = [document.fields for document in rendered.documents]
    clusters = provided_clusters(f"tasks.{name}", task.task, task.cluster, fields)
    questions = [
        replace(_question(task, document, several), cluster=cluster)
        for document, cluster in zip(rendered.documents, clusters, strict=True)
    ]
    return questions, rendered.info


def _question(task: ProviderChoices, ranked: RankedQuestion, has_parts: bool) -> Question:
    gold, choices, alone = ranked.right, tuple(ranked.choices), ranked.unconditional
    is_gold = task.kind == "gold"
    if is_gold:
        gold, choices, alone = 0, (ranked.choices[ranked.right],), None
    part = ranked.part if has_parts else None
    unconditional = None if alone is None else tuple(alone)
    contexts, candidates = zip(*choices, strict=True)
    identity = question_identity(contexts, () if is_gold else candidates)
    return Question(ranked.id, None, part, gold, choices, unconditional, is_gold, identity)


def provided_prompts(
    plan: StagePlan, name: str, task: ProviderTask
) -> tuple[TaskPrompts, TaskInfo, dict[str, Any]]:
    """Return a task's prompts, the provider's meta.json of the task, and the record of both.

    Raises:
        SourceError: The provider cannot render the task; names the task.
    """
    key, provider = f"generation_tasks.{name}", provider_of(plan, task)
    rendered = render(provider, key, _rendering_request(plan, task), Document)
    room = task.max_new_tokens or rendered.info.max_new_tokens
    if room is None:
        raise SourceError(
            f"{key}: {provider.name} does not say how long an answer of {task.task} may be; set "
            "`max_new_tokens`"
        )
    golds, others = _verified(plan, provider, task, rendered)
    _check_golds(key, task, golds)
    metrics = _metrics(key, task, rendered.info.metrics, [*golds, *others])
    recorded = {
        **rendered.info.model_dump(exclude={"documents", "metrics", "read"}),
        "name": task.provider,
        "max_new_tokens": room,
        "metrics": metrics,
        "golds": {metric: _share(metric, golds) for metric in metrics},
    }
    fields = [_fields(document) for document in rendered.documents]
    clusters = provided_clusters(key, task.task, task.cluster, fields)
    prompts = [
        replace(_with_system(_prompt(document, rendered), task.system), cluster=cluster)
        for document, cluster in zip(rendered.documents, clusters, strict=True)
    ]
    return TaskPrompts(prompts, rendered.info.documents, room), rendered.info, recorded


def _with_system(prompt: TaskPrompt, system: str | None) -> TaskPrompt:
    if system is None or isinstance(prompt.turns, str) or prompt.turns[0].role == "system":
        return prompt
    return replace(prompt, turns=(Message(role="system", content=system), *prompt.turns))


def limits_of(plan: StagePlan) -> CaseLimits:
    """Return the limits of verifying a completion."""
    return CaseLimits(plan.config.verification.seconds, plan.config.verification.memory_mb)


def _fields(document: Document) -> Mapping[str, Any]:
    """Return the fields of a document's row, without the name of the task."""
    fields: Mapping[str, Any] = document.document.get("doc", document.document)
    return fields


def _prompt(document: Document, rendered: Rendered[Document]) -> TaskPrompt:
    turns: tuple[Message, ...] | str = document.prompt or ""
    if document.messages is not None:
        turns = tuple(document.messages)
    parts = len(rendered.info.num_fewshot)
    strata = {"part": document.part} if parts > 1 else {}
    asked = [turns] if isinstance(turns, str) else [turn.content for turn in turns]
    same = question_identity(asked), row_identity(_fields(document))
    return TaskPrompt(document.id, turns, document.document, strata, *same)


def _verified(
    plan: StagePlan, provider: Provider, task: ProviderTask, rendered: Rendered[Document]
) -> tuple[list[CaseOutcome], list[CaseOutcome]]:
    """Return the outcomes of gold answers, and of texts from documents."""
    chosen = rendered.documents[:: math.ceil(len(rendered.documents) / TRIED)]
    golds: list[Case] = [(prompt.document, prompt.gold or "") for prompt in chosen]
    quotes: list[Case] = [
        (prompt.document, text) for prompt in chosen[:QUOTED] for text in _quotes(prompt)
    ]
    request = _rendering_request(plan, task) | {"task_files": rendered.info.task_files}
    scored = score(provider, request, [*golds, *quotes], limits_of(plan))
    return scored[: len(golds)], scored[len(golds) :]


def _quotes(document: Document) -> list[str]:
    """Return texts of a document, among them right and wrong answers."""
    return list(islice(dict.fromkeys(_texts(document.document)), QUOTED))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        yield from chain.from_iterable(map(_texts, inner))


def _check_golds(key: str, task: ProviderTask, golds: Sequence[CaseOutcome]) -> None:
    failed = [outcome.reason for outcome in golds if outcome.scores is None]
    if failed:
        raise SourceError(
            f"{key}: the metrics of {task.task} fail on {len(failed)} of {len(golds)} of its own "
            f"gold answers (the first: {shortened(failed[0])}); choose another task"
        )


def _metrics(
    key: str, task: ProviderTask, better: Mapping[str, bool], outcomes: Sequence[CaseOutcome]
) -> list[str]:
    """Return the metrics to report: those that give credit from 0 to 1, and for which more is better."""
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
            f"{key}: {task.task} has no metric from 0 to 1 for which more is better; it has "
            f"{', '.join(given) or 'none'}"
        )
    for metric in (*task.metrics, *filter(None, [task.primary])):
        if metric not in usable:
            why = "is not from 0 to 1, or less is better" if metric in given else "does not exist"
            raise SourceError(
                f"{key}: no metric {metric!r} of {task.task} can be reported, as it {why}; there are "
                f"{', '.join(usable)}"
            )
    return usable


def _share(metric: str, golds: Sequence[CaseOutcome]) -> float:
    """Return the share of gold answers, as plain text, that the metric counts as right."""
    credits = [verdict_of(metric, outcome, "").credit or 0.0 for outcome in golds]
    return math.fsum(credits) / len(credits)
