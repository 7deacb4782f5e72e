"""Tier3: score candidate answers by log-likelihood, and store the scores question by question.

The key of a stored question is what the model reads of it. The right answer and the question's groups
are joined later, where scores are graded.
"""

import itertools
import logging
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import pyarrow as pa

from evaluation.prefill.caches import Item, TaskCache
from evaluation.scoring.engine.backend import EngineBackend
from evaluation.scoring.engine.window import Request, Score, fit_requests
from evaluation.scoring.session import Job
from evaluation.settings.tiers import TIERS
from evaluation.store import StoredScore

log = logging.getLogger(__name__)

SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("logprob", pa.list_(pa.float64())),
        ("unconditional", pa.list_(pa.float64())),
        ("is_greedy", pa.list_(pa.bool_())),
        ("truncated", pa.int32()),
    ]
)
"""One row for each question, with a value for each candidate; `truncated` counts contexts."""


def score_tasks(job: Job, tasks: Mapping[str, TaskCache]) -> dict[str, Any]:
    """Score the questions that are not stored.

    Args:
        tasks: Prefilled questions, by the task's name.

    Returns:
        The tier's entry of the job's record.
    """
    return {"items": {name: _score_task(job, name, cache) for name, cache in tasks.items()}}


def _score_task(job: Job, name: str, cache: TaskCache) -> dict[str, Any]:
    job.begin(name)
    kept = {} if job.bos is None else {"bos": job.bos}  # scores without BOS keep their key
    key = job.key({"protocol": TIERS["tier3"].protocol, "prefix_token": job.prefix_token, **kept})
    item = f"choices-{name}"
    prefix = job.store.prefix(item, key)
    missing = _missing(job, prefix, dict(zip(cache.keys, cache.items, strict=True)))
    if missing:
        score = partial(
            score_questions,
            job.backend,
            missing,
            max_length=job.plan.sequence_length,
            prefix_token=job.prefix_token,
            bos=job.bos,
            label=f"Tier3 {name}",
        )
        job.add(item, key, job.measured(name, score))
    else:
        log.info("%s: already scored", name)
    return {"choices": prefix}


def _missing(job: Job, prefix: str, questions: dict[str, Item]) -> dict[str, Item]:
    """Return the questions that are not stored, in order; add the stored parts to the job's names."""
    keys = set(questions)
    for name, part in job.store.holding(prefix, keys):
        job.names.append(name)
        keys.difference_update(part.table["key"].to_pylist())
    return {key: one for key, one in questions.items() if key in keys}


def score_questions(
    backend: EngineBackend,
    questions: Mapping[str, Item],
    *,
    max_length: int,
    prefix_token: int,
    bos: int | None = None,
    label: str,
) -> StoredScore:
    """Score every candidate of questions, and the unconditional log-likelihoods that `pmi` subtracts.

    Args:
        questions: Questions by the key that they are stored under.
        max_length: Context window, in tokens.
        prefix_token: Id that replaces an empty context.
        bos: Id that begins every context, and stays when one is truncated; None: none does.

    Returns:
        A table of SCHEMA, a row for each question in their order.

    Raises:
        NonFiniteError: When the model returns NaN or infinity; it names the item.
        ScoringError: When a question cannot be scored; it names the item.
    """
    fit = partial(fit_requests, max_length=max_length, prefix_token=prefix_token, bos=bos)
    fitted = {key: fit(_requests(item)) for key, item in questions.items()}
    requests = [request for one in fitted.values() for request in one.requests]
    scores = iter(backend.log_likelihoods(requests, label=label))
    rows = [_row(key, item, fitted[key].truncated, scores) for key, item in questions.items()]
    return StoredScore(pa.Table.from_pylist(rows, schema=SCHEMA), {})


def _requests(item: Item) -> list[Request]:
    """Return requests for an item's candidates, then for its unconditional ones, if it has any."""
    kinds = {"candidate": item.candidates, "unconditional candidate": item.unconditional or ()}
    return [
        Request(item.contexts[candidate.context].tokens, candidate.tokens, f"{item.id}, {kind} {i}")
        for kind, candidates in kinds.items()
        for i, candidate in enumerate(candidates)
    ]


def _row(key: str, item: Item, truncated: int, scores: Iterator[Score]) -> dict[str, Any]:
    """Return a question's row, taking its scores in the order of its requests."""
    conditional = list(itertools.islice(scores, len(item.candidates)))
    unconditional = list(itertools.islice(scores, len(item.unconditional or ())))
    return {
        "key": key,
        "logprob": [score.logprob for score in conditional],
        "unconditional": [score.logprob for score in unconditional] or None,
        "is_greedy": [score.is_greedy for score in conditional],
        "truncated": truncated,
    }
