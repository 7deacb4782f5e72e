"""What scoring a tier means: every item of it through the store.

Each function takes the tier's caches by name and returns what the job's record says of the tier: the
name of each score, and of what it was made.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from evaluation.prefill.caches import GenerationCache, ProbeCache, SliceCache, TaskCache
from evaluation.scoring.choices import score_task
from evaluation.scoring.completions import answer_probes, complete_task
from evaluation.scoring.perplexity import score_slice
from evaluation.scoring.session import Job
from evaluation.settings.tiers import TIERS, complete

Scorer = Callable[[Job, Mapping[str, Any]], dict[str, Any]]


def score_slices(job: Job, slices: Mapping[str, SliceCache]) -> dict[str, Any]:
    """Score the blocks of Tier2."""
    attention = job.plan.suite.attention
    own = {"protocol": TIERS["tier2"].protocol, "attention": attention}
    items = {
        name: job.item(
            name, own, cache.meta, partial(score_slice, job.session.backend, cache, attention)
        )
        for name, cache in slices.items()
    }
    return {"attention": attention, "items": items}


def score_tasks(job: Job, tasks: Mapping[str, TaskCache]) -> dict[str, Any]:
    """Score the candidates of Tier3's questions."""
    return {"items": {name: score_task(job, name, cache) for name, cache in tasks.items()}}


def score_probes(job: Job, probes: Mapping[str, ProbeCache]) -> dict[str, Any]:
    """Answer the prompts of Tier4."""
    return answer_probes(job, probes[job.plan.name])


def score_generation_tasks(job: Job, tasks: Mapping[str, GenerationCache]) -> dict[str, Any]:
    """Complete the prompts of Tier5."""
    return {"tasks": {name: complete_task(job, name, cache) for name, cache in tasks.items()}}


SCORERS: Mapping[str, Scorer] = complete(
    {
        "tier2": score_slices,
        "tier3": score_tasks,
        "tier4": score_probes,
        "tier5": score_generation_tasks,
    },
    "scoring.tiers.SCORERS",
)
