"""Tasks of a provider: as questions of ranked choices, or as prompts and documents.

Before anything is generated, the provider verifies a few of its own gold answers: a metric that fails on
them would fail on every answer.

A suite's `cluster` is a template over the fields of the provider's document. Without it, tasks that are
known to ask several questions on one text, or many instances of one template, are grouped by the fields
of CLUSTER_FIELDS that their documents have.
"""

import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluation.errors import SourceError
from evaluation.prefill.items import question_identity, row_identity, warn_of_equal
from evaluation.prefill.questions import Question
from evaluation.prefill.sources import provided_state
from evaluation.prefill.task_prompts import TaskPrompt
from evaluation.prefill.templates import compile_template, values_of
from evaluation.providers.program import Provider
from evaluation.providers.tasks import Document, Outcome, TaskInfo, render, score, verdict_of
from evaluation.settings.plan import StagePlan
from evaluation.settings.provided import ProviderChoices, ProviderTask
from evaluation.settings.suites import Message
from evaluation.settings.verifiers import Provided
from evaluation.verification.verdicts import shortened

TRIED = 32
"""Gold answers that are verified at prefill."""

CLUSTER_FIELDS: Mapping[str, tuple[str, ...]] = {
    r"drop\b.*": ("passage_id", "section_id", "passage", "context"),
    r"(coqa|quac)\b.*": ("story_id", "story", "context"),
    r"squad.*": ("context", "passage"),
    r"gsm[-_]symbolic.*": ("original_id", "template_id"),
}
"""Fields that name a prompt's group, the first one that its document has, by names of tasks."""


def provider_of(plan: StagePlan, task: ProviderTask | ProviderChoices | Provided) -> Provider:
    """Return the provider of a task or verifier, with the interpreter and version configured."""
    python = os.path.abspath(getattr(plan.config.providers, task.provider))  # may be a link
    return Provider(task.provider, Path(python), task.version, plan.nltk_data)


def _rendered(
    plan: StagePlan, key: str, task: ProviderTask | ProviderChoices, kind: str
) -> tuple[TaskInfo, list[Document]]:
    """Return a task as its provider's program renders it."""
    asked = task.model_dump(include={"task", "chat", "num_fewshot", "limit"})
    request = {"kind": kind, "chat": False, "mirrors": dict(plan.config.mirrors), **asked}
    return render(provider_of(plan, task), key, request)


def provided_questions(
    plan: StagePlan, name: str, task: ProviderChoices
) -> tuple[list[Question], int, dict[str, Any]]:
    """Return a task's questions in order, how many there are in all, and their origin for meta.json."""
    key = f"tasks.{name}"
    info, documents = _rendered(plan, key, task, "choices")
    if task.kind == "ranked" and any(len(document.choices) < 2 for document in documents):
        raise SourceError(
            f"{key}: {task.task} scores only the right answer, so that nothing is ranked; set "
            "`kind: gold`"
        )
    has_parts, is_gold = len(info.num_fewshot) > 1, task.kind == "gold"
    clusters = clusters_of(key, task, [document.fields for document in documents])
    questions = []
    for ranked, cluster in zip(documents, clusters, strict=True):
        choices = (ranked.choices[ranked.right],) if is_gold else tuple(ranked.choices)
        contexts, candidates = zip(*choices, strict=True)
        alone = None if is_gold or ranked.unconditional is None else tuple(ranked.unconditional)
        asked = question_identity(contexts, () if is_gold else candidates)
        part, right = ranked.part if has_parts else None, 0 if is_gold else ranked.right
        question = Question(ranked.id, cluster, part, right, choices, alone, is_gold, asked)
        questions.append(question)
    reported = {"name": task.provider, "version": task.version}
    reported |= info.model_dump(include={"num_fewshot", "datasets"})
    return questions, info.documents, {"source": reported | _source(plan, info)}


def provided_prompts(
    plan: StagePlan, name: str, task: ProviderTask
) -> tuple[list[TaskPrompt], int, dict[str, Any]]:
    """Return a task's prompts, how many there are in all, and their origin for meta.json."""
    key, provider = f"generation_tasks.{name}", provider_of(plan, task)
    info, rendered = _rendered(plan, key, task, "generative")
    room = task.max_new_tokens or info.max_new_tokens
    if room is None:
        raise SourceError(
            f"{key}: {provider.name} does not say how long an answer of {task.task} may be; set "
            "`max_new_tokens`"
        )
    chosen = rendered[:: math.ceil(len(rendered) / TRIED)]
    golds = [(document.document, document.gold or "") for document in chosen]
    warn_of_equal(key, [gold for _, gold in golds if gold])
    outcomes = score(provider, task.task, golds, plan.config.verification)
    recorded = {
        "version": task.version,
        **info.model_dump(exclude={"documents", "metrics", "read"}),
        "name": task.provider,
        "max_new_tokens": room,
        "metrics": _metrics(key, task, info.metrics, outcomes),
    }
    rows = [document.document.get("doc", document.document) for document in rendered]
    clusters = clusters_of(key, task, rows)
    has_parts = len(info.num_fewshot) > 1
    prompts = [
        _prompt(document, row, cluster, task.system, has_parts)
        for document, row, cluster in zip(rendered, rows, clusters, strict=True)
    ]
    return prompts, info.documents, {"provider": recorded, "source": _source(plan, info)}


def _source(plan: StagePlan, info: TaskInfo) -> dict[str, Any]:
    state = provided_state(info.read, plan.config.mirrors)
    name = ", ".join(info.datasets)
    return {"dataset": name, "revision": None, "resolved": None, "state": state}


def _prompt(
    document: Document,
    row: Mapping[str, Any],
    cluster: str | None,
    system: str | None,
    has_parts: bool,
) -> TaskPrompt:
    turns: tuple[Message, ...] | str = document.prompt or ""
    if document.messages is not None:
        turns = tuple(document.messages)
        if system is not None and turns[0].role != "system":
            turns = (Message(role="system", content=system), *turns)
    asked = [turn.content for turn in document.messages or ()] or [document.prompt or ""]
    strata = {"part": document.part} if has_parts else {}
    same = question_identity(asked), row_identity(row)
    return TaskPrompt(document.id, turns, document.document, strata, *same, cluster)


def _metrics(
    key: str, task: ProviderTask, better: Mapping[str, bool], golds: Sequence[Outcome]
) -> list[str]:
    """Return the metrics to report: those that give credit from 0 to 1, and for which more is better."""
    scored = [outcome for outcome in golds if isinstance(outcome, dict)]
    failed = [outcome for outcome in golds if isinstance(outcome, str)]
    if failed:
        raise SourceError(
            f"{key}: the metrics of {task.task} fail on {len(failed)} of {len(golds)} of its own "
            f"gold answers (the first: {shortened(failed[0])}); choose another task"
        )
    given = dict.fromkeys(metric for outcome in scored for metric in outcome)
    usable = [
        metric
        for metric in given
        if better.get(metric, better.get(metric.partition(",")[0], True))
        and all(verdict_of(metric, outcome, "").credit is not None for outcome in golds)
    ]
    for metric in (*task.metrics, *filter(None, [task.primary]), *([] if usable else ["any"])):
        if metric not in usable:
            raise SourceError(
                f"{key}: no metric {metric!r} of {task.task} is from 0 to 1, where more is better; there are "
                f"{', '.join(usable) or 'none'}, of {', '.join(given) or 'none'}"
            )
    return usable


def clusters_of(
    key: str, task: ProviderTask | ProviderChoices, rows: Sequence[Mapping[str, Any]]
) -> list[str | None]:
    """Return the cluster of each row of a provider's task; None for an independent one."""
    if task.cluster is not None:
        template = compile_template(f"{key}.cluster", task.cluster)
        return [str(template(values_of(dict(row)))) for row in rows]
    known = (fields for name, fields in CLUSTER_FIELDS.items() if re.fullmatch(name, task.task))
    fields = next(known, ())
    found = ((row[field] for field in fields if row.get(field) not in (None, "")) for row in rows)
    return [None if (value := next(values, None)) is None else str(value) for values in found]
