"""Tier4 and Tier5: generate completions of prompts and store them; another step verifies them.

A completion is stored whole, with the text after its stop string, so that it can be cut again at other
stop strings. It is generated again only if it ended at a string that is no longer a stop string.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from evaluation.prefill.caches import PROMPTS, Prompt, PromptCache
from evaluation.prefill.tokenizers import stage_tokenizer
from evaluation.scoring.answers import GREEDY, GenerationRequest, stopping_with
from evaluation.scoring.imported_completions import imported_entry, imports_of
from evaluation.scoring.lacking import Lacking, Waiting, sample_keys, without
from evaluation.scoring.session import Job
from evaluation.scoring.stored_completions import prompt_key, stored_completions
from evaluation.scoring.vllm.agreement import Agreement
from evaluation.settings.generation import Sampling
from evaluation.settings.provided import settled_task
from evaluation.settings.tiers import TIERS

_READ_AFTER_PROMPT = {"text": "after the prompt"}
"""Part of the key of completions whose text depends on their prompts."""


def answer_probes(job: Job, probes: Mapping[str, PromptCache], waiting: Waiting) -> dict[str, Any]:
    """Answer greedily the prompts without an answer; return the tier's entry of the job's record."""
    cache = probes[job.plan.name]
    job.begin("probes")
    meta = cache.meta
    return {
        "chats": [_answer_chat(job, waiting, cache, chat) for chat in meta["chats"]],
        "prompts": {prompt.id: prompt_key(prompt) for prompt in cache.prompts},
        "texts": {prompt.id: prompt.prompt for prompt in cache.prompts},
        "data": meta["definition"],
        "data_checksum": meta["checksum"],
        "items": meta["items"],
    }


def _answer_chat(
    job: Job, waiting: Waiting, cache: PromptCache, chat: Mapping[str, Any]
) -> dict[str, Any]:
    """Answer the probes of one chat template and set of stop strings."""
    prompts = [prompt for prompt in cache.prompts if prompt.id in set(chat["probes"])]
    part = PromptCache(prompts, {**cache.meta, "eos_token_ids": chat["eos_token_ids"]})
    key = _key(job, "tier4", part, GREEDY, {})
    answers = _complete(job, waiting, "probes", key, part, GREEDY, chat["stop"])
    return {**chat, "answers": answers}


def complete_tasks(job: Job, tasks: Mapping[str, PromptCache], waiting: Waiting) -> dict[str, Any]:
    """Complete the prompts that lack samples; return the tier's entry of the job's record."""
    entries = {name: _complete_task(job, waiting, name, cache) for name, cache in tasks.items()}
    return {"tasks": entries}


def _complete_task(job: Job, waiting: Waiting, name: str, cache: PromptCache) -> dict[str, Any]:
    job.begin(name)
    meta = cache.meta
    task = settled_task(job.plan.suite.generation_tasks[name], meta)
    stops = (*task.stop, *meta["end_strings"])
    engine, agreement = job.plan.config.generation.decoding, None
    other: dict[str, Any] | None = None
    if origin := imports_of(job.store).get(name):
        engine = {"engine": str(origin["engine"])}
        prefix, used, other = imported_entry(job.store, name, origin, cache, task.sampling.n, stops)
        job.names += used
    else:
        key = _key(job, "tier5", cache, task.sampling, engine)
        requests = _requests(task.sampling, cache.prompts)
        agreement = Agreement(job, name, key, requests) if engine else None
        prefix = _complete(job, waiting, name, key, cache, task.sampling, stops, agreement)
    entry = {
        "completions": prefix,
        "engine": other,
        "prompts": {prompt.id: prompt_key(prompt) for prompt in cache.prompts},
        "decoding": {**task.decoding, **engine},
        "stop": list(stops),
        "chat_template": meta["chat_template"],
        "too_long": meta["too_long"],
        "shortened": meta.get("shortened", []),
        "window": meta.get("window"),
        "data": meta["asked_definition"],
        "data_checksum": {PROMPTS: meta["checksum"][PROMPTS]},
        "items": meta["items"],
    }
    if agreement:
        waiting.afterwards.append(partial(_tell_agreement, job, entry, agreement))
    return entry


def _tell_agreement(job: Job, entry: dict[str, Any], agreement: Agreement) -> None:
    """Add a measured agreement to a task's entry of the record."""
    entry["engine"] = agreement.stored()
    job.names.append(agreement.name)


def _key(
    job: Job, tier: str, cache: PromptCache, sampling: Sampling, engine: Mapping[str, str]
) -> dict[str, Any]:
    return job.key(
        {
            "protocol": TIERS[tier].scoring,
            "tokenizer": job.tokenizer["fingerprint"],
            "sampling": sampling.model_dump(exclude={"n"}),
            "eos_token_ids": _end_tokens(job, cache),
            **({} if job.tokenizer["decodes_anywhere"] else _READ_AFTER_PROMPT),
            **engine,
        }
    )


def _end_tokens(job: Job, cache: PromptCache) -> list[int]:
    """Return the ids that end an answer, by the tokenizer or by the checkpoint's own configuration."""
    return sorted({*cache.meta["eos_token_ids"], *job.checkpoint.end_tokens})


def _complete(
    job: Job,
    waiting: Waiting,
    name: str,
    key: Mapping[str, Any],
    cache: PromptCache,
    sampling: Sampling,
    stops: Sequence[str],
    agreement: Agreement | None = None,
) -> str:
    """Queue the samples that are not stored; return the prefix of all names in the store.

    The built-in engine generates them, or vLLM, whose `agreement` with it is measured.
    """
    item = f"completions-{name}"
    prefix = job.store.prefix(item, key)
    requests = _requests(sampling, cache.prompts)
    keys = sample_keys(requests)
    stored, used = stored_completions(job.store, prefix, keys, stops)
    job.names += used
    if set(keys) - stored.keys() or (agreement and agreement.stored() is None):
        with job.naming(name):
            tokenizer = stage_tokenizer(job.plan)
            stopping = stopping_with(tokenizer, _end_tokens(job, cache), stops)
        left = without(stored, requests)
        waiting.lacking.append(Lacking(name, item, key, left, stopping, agreement))
    return prefix


def _requests(sampling: Sampling, prompts: Sequence[Prompt]) -> list[GenerationRequest]:
    """Return the requests for all samples, in order; prompts of equal tokens are requested once."""
    samples, by_key = tuple(range(sampling.n)), {prompt_key(prompt): prompt for prompt in prompts}
    return [
        GenerationRequest(key, prompt.tokens, prompt.max_new_tokens, samples, sampling)
        for key, prompt in by_key.items()
    ]
