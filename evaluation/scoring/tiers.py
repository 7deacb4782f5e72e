"""What scoring a tier means: every item of it through the store.

Each function takes the tier's caches by name and returns what the job's record says of the tier: the
name of each score, and of what it was made.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from evaluation.prefill.caches import GenerationCache, ProbeCache, SliceCache, TaskCache
from evaluation.prefill.tokenizers import load_tokenizer
from evaluation.scoring.choices import score_task
from evaluation.scoring.completions import complete_task
from evaluation.scoring.perplexity import score_slice
from evaluation.scoring.prompts import answer_prompts, prompt_key
from evaluation.settings.tiers import TIERS, complete

if TYPE_CHECKING:
    from evaluation.scoring.job import Job

Scorer = Callable[["Job", Mapping[str, Any]], dict[str, Any]]


def score_slices(job: "Job", slices: Mapping[str, SliceCache]) -> dict[str, Any]:
    """Tier2."""
    attention = job.plan.suite.attention
    own = {"protocol": TIERS["tier2"].protocol, "attention": attention}
    items = {
        name: job.item(
            name, own, cache.meta, partial(score_slice, job.session.backend, cache, attention)
        )
        for name, cache in slices.items()
    }
    return {"attention": attention, "items": items}


def score_tasks(job: "Job", tasks: Mapping[str, TaskCache]) -> dict[str, Any]:
    """Tier3."""
    return {"items": {name: score_task(job, name, cache) for name, cache in tasks.items()}}


def score_probes(job: "Job", probes: Mapping[str, ProbeCache]) -> dict[str, Any]:
    """Tier4: answers to all prompts that have none yet."""
    cache = probes[job.plan.name]
    meta = cache.meta
    key = job.key(
        {
            "protocol": TIERS["tier4"].protocol,
            "stop": meta["stop"],
            "eos_token_ids": meta["eos_token_ids"],
        }
    )
    prefix = job.store.prefix("answers", key)
    asked = job.lacking(prefix, {prompt_key(prompt): prompt for prompt in cache.prompts})
    if asked:
        plan = job.plan
        tokenizer = load_tokenizer(str(plan.tokenizer_folder), use_fast=plan.tokenizer.use_fast)
        with job.naming("probes"):
            for part in answer_prompts(job.session.backend, tokenizer, cache, [*asked.values()]):
                job.keep("answers", key, job.stamped(part, part.summary))
    return {
        "answers": prefix,
        "prompts": {prompt.id: prompt_key(prompt) for prompt in cache.prompts},
        "data": meta["definition"],
        "data_checksum": meta["checksum"],
        "items": meta["items"],
        "chat_template": meta["chat_template"],
        "stop": meta["stop"],
    }


def score_generation_tasks(job: "Job", tasks: Mapping[str, GenerationCache]) -> dict[str, Any]:
    """Tier5: completions that are not there yet."""
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
