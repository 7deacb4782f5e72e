"""Tier3: candidate answers ranked by log-likelihood."""

import itertools
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from evaluation.grading.accuracy import check_items
from evaluation.prefill.caches import Item, TaskCache
from evaluation.results.columns import CANDIDATES, arrow_schema
from evaluation.scoring.backend import Backend
from evaluation.scoring.engine.window import Request, Score, fit_requests
from evaluation.store import StoredScore

SCHEMA = arrow_schema(CANDIDATES[1:])  # the first one names the item


def score_task(
    backend: Backend,
    cache: TaskCache,
    *,
    max_length: int,
    prefix_token: int,
) -> StoredScore:
    """Scores every candidate of a task, and what `pmi` subtracts where the task has it.

    Raises:
        NonFiniteError, ScoringError: name the item.
    """
    asked = [request for item in cache.items for request in _requests(item)]
    fitted = fit_requests(asked, max_length=max_length, prefix_token=prefix_token)
    name = cache.items[0].id.rpartition("/")[0] if cache.items else ""
    scores = iter(backend.log_likelihoods(fitted.requests, label=f"Tier3 {name}"))
    rows = [row for item in cache.items for row in _rows(item, scores)]
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    check_items(table)
    return StoredScore(table, {"truncated_contexts": fitted.truncated})


def _requests(item: Item) -> list[Request]:
    """The candidates of an item, then their unconditional twins if it has them."""
    return [
        Request(item.contexts[candidate.context].tokens, candidate.tokens, f"{item.id}, {kind} {i}")
        for kind, candidates in (
            ("candidate", item.candidates),
            ("unconditional candidate", item.unconditional or ()),
        )
        for i, candidate in enumerate(candidates)
    ]


def _rows(item: Item, scores: Iterator[Score]) -> list[dict[str, Any]]:
    """The table's rows of an item, taking its scores in the order of its requests."""
    own = list(itertools.islice(scores, len(item.candidates)))
    twins = [score.logprob for score in itertools.islice(scores, len(item.unconditional or ()))]
    return [
        {
            "item": item.id,
            "cluster": item.cluster,
            "stratum": item.stratum,
            "candidate": i,
            "gold": i == item.gold,
            "logprob": score.logprob,
            "unconditional": twins[i] if twins else None,
            "tokens": len(candidate.tokens),
            "chars": candidate.chars,
            "bytes": candidate.bytes,
            "is_greedy": score.is_greedy,
        }
        for i, (candidate, score) in enumerate(zip(item.candidates, own, strict=True))
    ]
