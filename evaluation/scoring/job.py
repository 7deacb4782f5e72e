"""Score one checkpoint on everything that a stage evaluates, and write a record of it.

What is in the score store is reused; the model is loaded only if something is missing. The record names
the scores; `grading.collect` makes the tier files from them.
"""

import logging
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from evaluation.checkpoints.inspect import trained_context
from evaluation.checkpoints.subjects import Subject
from evaluation.checkpoints.training import consumed_tokens
from evaluation.errors import CommandError, EvaluationError
from evaluation.files import fingerprint
from evaluation.prefill.entries import read_meta
from evaluation.prefill.tiers import PREFILLS, Cached
from evaluation.records import Made
from evaluation.scoring.choices import plan_tasks
from evaluation.scoring.completions import plan_generation_tasks, plan_probes
from evaluation.scoring.external import run_external
from evaluation.scoring.loop import ALL, Planned, Share, score_lacking
from evaluation.scoring.perplexity import plan_slices
from evaluation.scoring.session import Job
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TierName
from evaluation.store import ScoreStore

log = logging.getLogger(__name__)

PLANNERS: Mapping[str, Callable[[Job, Mapping[str, Any]], Planned]] = {
    "tier2": plan_slices,
    "tier3": plan_tasks,
    "tier4": plan_probes,
    "tier5": plan_generation_tasks,
}
"""Returns the items of each tier from its caches by name."""

StageData = dict[TierName, dict[str, Cached]]
"""Every tier's cache entries by name, read and checked."""


def score(subject: Subject) -> Made:
    """Score one checkpoint of a stage, or say why it cannot be scored, so that others continue without it.

    Other errors, such as a missing cache or a GPU that does not respond, are raised; finished scores stay.
    """
    consumed = consumed_tokens(subject.checkpoint)  # before it may be deleted
    try:
        about, store, names = _score(subject)
    except EvaluationError as error:
        if not error.is_final:
            raise
        log.debug("where it happened:", exc_info=True)
        return Made(error=str(error))
    store.pack()
    return Made(store.holders(names), about={**about, "consumed_tokens": consumed})


def score_share(subject: Subject, share: Share) -> None:
    """Score a share of a checkpoint's keys into the store, without a record; others score the rest."""
    if subject.plan.stage.command:
        raise CommandError(
            f"stages.{subject.plan.name}.command scores a checkpoint as a whole; leave --part out"
        )
    job, planned = _planned(subject)
    items = [item for tier in planned.values() for item in tier.items]
    job.backend.within_memory(partial(score_lacking, job, items, share))
    job.check_unchanged()


def _planned(subject: Subject) -> tuple[Job, dict[TierName, Planned]]:
    tokenizer, data = read_meta(subject.plan.tokenizer_folder), read_stage_data(subject.plan)
    metas = [cache.meta for caches in data.values() for cache in caches.values()]
    job = Job(subject, tokenizer, max(int(meta["vocab_size_needed"]) for meta in metas))
    return job, {name: PLANNERS[name](job, caches) for name, caches in data.items()}


def _score(subject: Subject) -> tuple[dict[str, Any], ScoreStore, list[str]]:
    """Return the record's content, the store, and the names of the scores in the store."""
    if subject.plan.stage.command:
        return run_external(subject)
    job, planned = _planned(subject)
    items = [item for tier in planned.values() for item in tier.items]
    job.backend.within_memory(partial(score_lacking, job, items, ALL))
    job.check_unchanged()
    about = {
        "checkpoint": str(job.location),
        "identity": job.store.identity,
        "tokenizer": {key: job.tokenizer[key] for key in ("name", "fingerprint", "prepend_bos")},
        "sequence_length": subject.plan.sequence_length,
        **trained_context(job.checkpoint),
        **job.numeric_settings,
        "tiers": {name: tier.entry() for name, tier in planned.items()},
    }
    return about, job.store, [name for item in items for name in item.rows.used]


def read_stage_data(plan: StagePlan) -> StageData:
    """Read all caches of a stage, each once in a process: many questions take seconds to read."""
    return {
        tier: {
            name: _entry(tier, plan.cache_folder(tier, name)) for name in plan.cache_entries(tier)
        }
        for tier in plan.tiers
    }


def _entry(tier: TierName, folder: Path) -> Cached:
    return _read(tier, folder, fingerprint(read_meta(folder)))  # it has checksums of all files


@lru_cache(maxsize=256)
def _read(tier: TierName, folder: Path, meta: str) -> Cached:
    return PREFILLS[tier].read(folder)
