"""Tier3: score candidate answers by log-likelihood, and store the scores question by question.

The key of a stored question is what the model reads of it. The right answer and the question's groups
are joined later, where scores are graded.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from evaluation.prefill.caches import TaskCache
from evaluation.scoring.engine.backend import EngineBackend
from evaluation.scoring.engine.tries import Ints
from evaluation.scoring.session import Job
from evaluation.scoring.task_plans import FitWindow, TaskPlan, plan_questions
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
    """Score the questions that are not stored; return the tier's entry of the job's record."""
    return {"items": {name: _score_task(job, name, cache) for name, cache in tasks.items()}}


def _score_task(job: Job, name: str, cache: TaskCache) -> dict[str, Any]:
    job.begin(name)
    kept = {} if job.bos is None else {"bos": job.bos}  # scores without BOS keep their key
    key = job.key({"protocol": TIERS["tier3"].protocol, "prefix_token": job.prefix_token, **kept})
    item = f"choices-{name}"
    prefix = job.store.prefix(item, key)
    window = FitWindow(job.plan.sequence_length, job.prefix_token, job.bos)
    missing = _missing(job, prefix, list(dict.fromkeys(cache.keys)))
    if missing:

        def score() -> StoredScore:
            items = dict(zip(cache.keys, cache.items, strict=True))
            plan = plan_questions({key: items[key] for key in missing}, window)
            return score_plan(job.backend, plan, label=f"Tier3 {name}")

        job.add(item, key, job.measured(name, score))
    else:
        log.info("%s: already scored", name)
    return {"choices": prefix}


def _missing(job: Job, prefix: str, questions: Sequence[str]) -> list[str]:
    """Return the keys that are not stored, in order; add the stored parts to the job's names."""
    keys = set(questions)
    for name, part in job.store.holding(prefix, keys):
        job.names.append(name)
        keys.difference_update(part.table["key"].to_pylist())
    return [key for key in questions if key in keys]


def score_plan(backend: EngineBackend, plan: TaskPlan, *, label: str) -> StoredScore:
    """Score every candidate of questions, and the unconditional log-likelihoods that `pmi` subtracts.

    Returns:
        A table of SCHEMA, a row for each question in their order.

    Raises:
        NonFiniteError: When the model returns NaN or infinity; it names the item.
    """
    scores = backend.log_likelihoods(plan.requests, label=label)
    logprob = np.array([score.logprob for score in scores], dtype=np.float64)
    is_greedy = np.array([score.is_greedy for score in scores], dtype=np.bool_)
    kinds = np.stack([plan.candidates, plan.unconditional], axis=1).ravel()
    is_candidate = np.repeat(np.arange(len(kinds)) % 2 == 0, kinds)
    columns = [
        pa.array(plan.keys, pa.string()),
        _lists(logprob[is_candidate], plan.candidates),
        _lists(logprob[~is_candidate], plan.unconditional, plan.unconditional == 0),
        _lists(is_greedy[is_candidate], plan.candidates),
        pa.array(plan.truncated, pa.int32()),
    ]
    return StoredScore(pa.table(columns, schema=SCHEMA), {})


def _lists(
    values: NDArray[Any], sizes: Ints, are_none: NDArray[np.bool_] | None = None
) -> pa.ListArray:
    """Return lists of such sizes of consecutive values; some are null."""
    offsets = pa.array(np.append(0, np.cumsum(sizes)), pa.int32())
    mask = None if are_none is None else pa.array(are_none)
    return pa.ListArray.from_arrays(offsets, pa.array(values), mask=mask)
