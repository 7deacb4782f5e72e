"""Score one checkpoint on everything that a stage evaluates, and write a record of it.

Items in the score store are reused; all others are scored and stored at once, so a job that was killed
resumes after its last finished item. The model is loaded only if an item is missing. The job leaves a
record that names the scores; `grading.collect` makes the tier files from them.
"""

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from evaluation.checkpoints.inspect import trained_context
from evaluation.checkpoints.subjects import Subject
from evaluation.checkpoints.training import consumed_tokens
from evaluation.dependencies.making import Made
from evaluation.dependencies.places import Place
from evaluation.errors import EvaluationError
from evaluation.prefill.entries import read_meta
from evaluation.prefill.tiers import PREFILLS, Cached
from evaluation.scoring.answer_queue import answer_lacking
from evaluation.scoring.choices import score_tasks
from evaluation.scoring.completions import answer_probes, complete_tasks
from evaluation.scoring.external import run_external
from evaluation.scoring.lacking import Waiting
from evaluation.scoring.perplexity import score_slices
from evaluation.scoring.session import Job
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TierName, complete
from evaluation.store import ScoreStore

log = logging.getLogger(__name__)

Scorer = Callable[[Job, Mapping[str, Any], Waiting], dict[str, Any]]


def _at_once(score: Callable[[Job, Mapping[str, Any]], dict[str, Any]]) -> Scorer:
    """Return a scorer that leaves nothing waiting."""
    return lambda job, caches, waiting: score(job, caches)


SCORERS: Mapping[str, Scorer] = complete(
    {
        "tier2": _at_once(score_slices),
        "tier3": _at_once(score_tasks),
        "tier4": answer_probes,
        "tier5": complete_tasks,
    },
    "scoring.job.SCORERS",
)
"""Scorer of each tier: it takes the tier's caches by name, returns the tier's entry of the record, and
says which completions wait."""

StageData = dict[TierName, dict[str, Cached]]
"""Every tier's cache entries by name, read and checked."""

_read: dict[Path, tuple[Mapping[str, Any], Cached]] = {}
"""Cache entries of the stage that was scored last, by folder, with the meta.json of each."""


def score(place: Place) -> Made:
    """Score one checkpoint of a stage, or say why it cannot be scored, so that others continue without it.

    Returns:
        The files of the store that have the scores, or the error of the checkpoint itself.

    Raises:
        EvaluationError: For any other error, such as a missing cache or a GPU that does not respond;
            finished scores stay in the store.
    """
    consumed = consumed_tokens(place.subject.checkpoint)  # before it may be deleted
    try:
        about, store, names = _score(place.subject)
    except EvaluationError as error:
        if not error.is_final:
            raise
        log.debug("where it happened:", exc_info=True)
        return Made(error=str(error))
    store.pack()
    return Made(store.holders(names), about={**about, "consumed_tokens": consumed})


def _score(subject: Subject) -> tuple[dict[str, Any], ScoreStore, list[str]]:
    """Return the record's content, the store, and the names of the scores in the store."""
    plan = subject.plan
    if plan.stage.command:
        return run_external(subject)
    tokenizer = read_meta(plan.tokenizer_folder)
    data = read_stage_data(plan)
    metas = [cache.meta for caches in data.values() for cache in caches.values()]
    needed = max(int(meta["vocab_size_needed"]) for meta in metas)
    job, waiting = Job(subject, tokenizer, needed), Waiting()
    tiers = {name: SCORERS[name](job, caches, waiting) for name, caches in data.items()}
    answer_lacking(job, waiting)
    job.check_unchanged()
    about = {
        "checkpoint": str(job.location),
        "identity": job.store.identity,
        "tokenizer": {key: tokenizer[key] for key in ("name", "fingerprint", "prepend_bos")},
        "sequence_length": plan.sequence_length,
        **trained_context(job.checkpoint),
        **job.numeric_settings,
        "tiers": tiers,
    }
    return about, job.store, job.names


def read_stage_data(plan: StagePlan) -> StageData:
    """Read all caches of a stage; reuse those that are unchanged since this process last read them.

    Reading many questions takes seconds, for which a GPU would wait before each checkpoint.

    Raises:
        CacheError: When an entry is missing or damaged; it names the first.
    """
    global _read
    before, _read = _read, {}
    return {
        tier: {
            name: _entry(tier, plan.cache_folder(tier, name), before)
            for name in plan.cache_entries(tier)
        }
        for tier in plan.tiers
    }


def _entry(
    tier: TierName, folder: Path, before: Mapping[Path, tuple[Mapping[str, Any], Cached]]
) -> Cached:
    meta = read_meta(folder)  # it has checksums of all files next to it
    earlier = before.get(folder)
    if earlier is None or earlier[0] != meta:
        earlier = meta, PREFILLS[tier].read(folder)
    _read[folder] = earlier
    return earlier[1]
