"""Tier4 and Tier5: generate completions of prompts and store them; another step verifies them.

A completion is stored whole, with the text after its stop string, so that it can be cut again at other
stop strings. It is generated again only if it ended at a string that is no longer a stop string.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from evaluation.prefill.caches import PROMPTS, Prompt, PromptCache
from evaluation.prefill.tokenizers import stage_tokenizer
from evaluation.scoring.answers import GREEDY, Answer, AnswerKey, GenerationRequest, stopping_with
from evaluation.scoring.former_completions import read_anew, text_key
from evaluation.scoring.session import Job
from evaluation.scoring.stored_completions import (
    COMPLETIONS,
    STOP,
    Completion,
    prompt_key,
    sample_key,
    stored_completions,
)
from evaluation.scoring.vllm.agreement import Agreement
from evaluation.settings.generation import Sampling
from evaluation.settings.provided import settled_task
from evaluation.settings.tiers import TIERS
from evaluation.store import StoredScore


def answer_probes(job: Job, probes: Mapping[str, PromptCache]) -> dict[str, Any]:
    """Answer greedily the prompts that have no answer yet.

    Args:
        job: The checkpoint and its stage's settings.
        probes: Prefilled prompts, by the stage's name.

    Returns:
        The tier's entry of the job's record.
    """
    cache = probes[job.plan.name]
    job.begin("probes")
    meta = cache.meta
    return {
        "chats": [_answer_chat(job, cache, chat) for chat in meta["chats"]],
        "prompts": {prompt.id: prompt_key(prompt) for prompt in cache.prompts},
        "texts": {prompt.id: prompt.prompt for prompt in cache.prompts},
        "data": meta["definition"],
        "data_checksum": meta["checksum"],
        "items": meta["items"],
    }


def _answer_chat(job: Job, cache: PromptCache, chat: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the probes of one chat template and set of stop strings."""
    own = [prompt for prompt in cache.prompts if prompt.id in set(chat["probes"])]
    part = PromptCache(own, {**cache.meta, "eos_token_ids": chat["eos_token_ids"]})
    key = _key(job, "tier4", part, GREEDY, {})
    return {**chat, "answers": _complete(job, "probes", key, part, GREEDY, chat["stop"])}


def complete_tasks(job: Job, tasks: Mapping[str, PromptCache]) -> dict[str, Any]:
    """Complete the prompts that lack samples.

    Args:
        job: The checkpoint and its stage's settings.
        tasks: Prefilled prompts, by the task's name.

    Returns:
        The tier's entry of the job's record.
    """
    return {"tasks": {name: _complete_task(job, name, cache) for name, cache in tasks.items()}}


def _complete_task(job: Job, name: str, cache: PromptCache) -> dict[str, Any]:
    job.begin(name)
    meta = cache.meta
    task = settled_task(job.plan.suite.generation_tasks[name], meta)
    stops = (*task.stop, *meta["end_strings"])
    engine = job.plan.config.generation.decoding
    key = _key(job, "tier5", cache, task.sampling, engine)
    requests = missing_requests(task.sampling, cache.prompts, {})
    agreement = Agreement(job, name, key, requests) if engine else None
    return {
        "completions": _complete(job, name, key, cache, task.sampling, stops, agreement),
        "engine": agreement and agreement.stored(),
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


def _key(
    job: Job, tier: str, cache: PromptCache, sampling: Sampling, engine: Mapping[str, str]
) -> dict[str, Any]:
    return job.key(
        {
            "protocol": TIERS[tier].protocol,
            "tokenizer": job.tokenizer["fingerprint"],
            "sampling": sampling.model_dump(exclude={"n"}),
            "eos_token_ids": cache.meta["eos_token_ids"],
            **text_key(job.tokenizer),
            **engine,
        }
    )


def _complete(
    job: Job,
    name: str,
    key: Mapping[str, Any],
    cache: PromptCache,
    sampling: Sampling,
    stops: Sequence[str],
    agreement: Agreement | None = None,
) -> str:
    """Complete the prompts that lack samples; return the prefix of their names in the store.

    The built-in engine generates them, or vLLM, whose `agreement` with it is measured.
    """
    item = f"completions-{name}"
    prefix = job.store.prefix(item, key)
    keys = [sample_key(prompt_key(p), n) for p in cache.prompts for n in range(sampling.n)]
    stored, used = stored_completions(job.store, prefix, keys, stops)
    job.names += used
    requests = missing_requests(sampling, cache.prompts, stored)
    if requests or (agreement and agreement.stored() is None):
        with job.naming(name):
            tokenizer = stage_tokenizer(job.plan)
            stopping = stopping_with(tokenizer, cache.meta["eos_token_ids"], stops)
            lacking = {one for one in keys if one not in stored}
            if read_anew(job, item, key, cache.prompts, lacking, stopping):
                stored, _ = stored_completions(job.store, prefix, keys, stops)
                requests = missing_requests(sampling, cache.prompts, stored)
            if requests or agreement:
                answers = agreement.measured if agreement else job.backend.answers
                parts = answers(requests, stopping, vocabulary=tokenizer.rows)
                for part in completion_tables(requests, parts):
                    job.add(item, key, job.stamped(part, {**part.summary, STOP: list(stops)}))
    if agreement:
        job.names.append(agreement.name)
    return prefix


def missing_requests(
    sampling: Sampling, prompts: Sequence[Prompt], stored: Mapping[str, Completion]
) -> list[GenerationRequest]:
    """Return the requests that must be generated; prompts of equal tokens are requested once.

    Args:
        sampling: How samples are drawn, and how many for each prompt.
        prompts: All prompts of a task.
        stored: Stored completions, by `sample_key`.

    Returns:
        A request for each prompt that lacks samples, in the order of the prompts.
    """
    requests: dict[str, GenerationRequest] = {}
    for prompt in prompts:
        key = prompt_key(prompt)
        lacking = tuple(n for n in range(sampling.n) if sample_key(key, n) not in stored)
        if lacking:
            requests[key] = GenerationRequest(
                key, prompt.tokens, prompt.max_new_tokens, lacking, sampling
            )
    return list(requests.values())


def completion_tables(
    requests: Sequence[GenerationRequest], parts: Iterator[dict[AnswerKey, Answer]]
) -> Iterator[StoredScore]:
    """Yield a table of COMPLETIONS for each finished part of the answers.

    Args:
        requests: All requests; the answers' keys hold indices of them.
        parts: Answers, in parts as they are finished.

    Yields:
        The part's table, with its seconds and its tokens read (each prompt once a part) and written.
    """
    start = time.perf_counter()
    for answers in parts:
        rows = [
            {
                "key": sample_key(requests[key.request].id, key.sample),
                "text": answer.raw,
                "stop_reason": answer.stop_reason,
                "prompt_tokens": len(requests[key.request].tokens),
                "completion_tokens": len(answer.tokens),
                "tokens": list(answer.tokens),
            }
            for key, answer in answers.items()
        ]
        read = {key.request: len(requests[key.request].tokens) for key in answers}
        written = sum(len(answer.tokens) for answer in answers.values())
        spent = {
            "seconds": time.perf_counter() - start,
            "tokens_processed": sum(read.values()) + written,
        }
        yield StoredScore(pa.Table.from_pylist(rows, schema=COMPLETIONS), spent)
        start = time.perf_counter()
