"""Tier4 and Tier5: what a model writes after each prompt, stored as it is done; verifying is another step.

The stop strings of probes are part of what their answers are stored under. A task's completion is
stored whole, with the text behind its stop string, so that other stop strings cut it again. Only
where it ended at a string that is no stop any more has the model to go on.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from evaluation.prefill.caches import PROMPTS, PromptCache
from evaluation.prefill.schema import Prompt
from evaluation.prefill.tokenizers import AnyTokenizer, load_tokenizer, vocabulary_size
from evaluation.scoring.answers import Answer, AnswerKey, GenerationRequest, stopping_with
from evaluation.scoring.backend import Backend
from evaluation.scoring.session import Job
from evaluation.scoring.stored_completions import (
    ANSWERS,
    COMPLETIONS,
    STOP,
    Completion,
    prompt_key,
    sample_key,
    stored_completions,
)
from evaluation.scoring.vllm.agreement import Agreement, greedy
from evaluation.settings.generation import Judged
from evaluation.settings.provided import judged_task
from evaluation.settings.tiers import TIERS
from evaluation.store import StoredScore

Row = Callable[[AnswerKey, Answer], dict[str, Any]]
"""The stored row of an answer."""


def answer_probes(job: Job, probes: Mapping[str, PromptCache]) -> dict[str, Any]:
    """Answer all prompts that have no answer yet; return what the job's record says of the tier."""
    cache = probes[job.plan.name]
    job.begin("probes")
    meta = cache.meta
    key = job.key(
        {
            "protocol": TIERS["tier4"].protocol,
            "tokenizer": job.tokenizer["fingerprint"],
            "stop": meta["stop"],
            "eos_token_ids": meta["eos_token_ids"],
        }
    )
    prefix = job.store.prefix("answers", key)
    lacking = job.lacking(prefix, {prompt_key(prompt): prompt for prompt in cache.prompts})
    if lacking:
        with job.naming("probes"):
            backend, tokenizer = job.session.backend, _tokenizer(job)
            for part in answer_prompts(backend, tokenizer, cache, [*lacking.values()]):
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


def answer_prompts(
    backend: Backend, tokenizer: AnyTokenizer, cache: PromptCache, prompts: Sequence[Prompt]
) -> Iterator[StoredScore]:
    """Answer prompts of a cache greedily; yield a table of ANSWERS for each part as it is done.

    Raises NonFiniteError where the model gives NaN or infinity.
    """
    requests = [
        GenerationRequest(prompt.id, prompt.tokens, prompt.max_new_tokens) for prompt in prompts
    ]
    stopping = stopping_with(tokenizer, cache.meta["eos_token_ids"], cache.meta["stop"])
    parts = backend.answers(requests, stopping, vocabulary=vocabulary_size(tokenizer))

    def row(key: AnswerKey, answer: Answer) -> dict[str, Any]:
        prompt = prompts[key.request]
        return {
            "key": prompt_key(prompt),
            "prompt": prompt.prompt,
            "response": answer.text,
            "stop_reason": answer.stop_reason,
            "prompt_tokens": len(prompt.tokens),
            "response_tokens": len(answer.tokens),
        }

    return _tables(requests, parts, row, ANSWERS)


def complete_tasks(job: Job, tasks: Mapping[str, PromptCache]) -> dict[str, Any]:
    """Complete the prompts that lack samples; return what the job's record says of the tier."""
    return {"tasks": {name: _complete_task(job, name, cache) for name, cache in tasks.items()}}


def _complete_task(job: Job, name: str, cache: PromptCache) -> dict[str, Any]:
    job.begin(name)
    meta = cache.meta
    task = judged_task(job.plan.suite.generation_tasks[name], meta)
    stops = (*task.stop, *meta["end_strings"])
    engine = job.plan.config.generation.decoding()
    key = job.key(
        {
            "protocol": TIERS["tier5"].protocol,
            "tokenizer": job.tokenizer["fingerprint"],
            "sampling": task.sampling.model_dump(exclude={"n"}),
            "eos_token_ids": meta["eos_token_ids"],
            **engine,
        }
    )
    item = f"completions-{name}"
    prefix = job.store.prefix(item, key)
    both = greedy(_missing(task, cache.prompts, {}))
    agreement = Agreement(job, name, key, both) if engine else None
    keys = [sample_key(prompt_key(p), n) for p in cache.prompts for n in range(task.sampling.n)]
    stored, used = stored_completions(job.store, prefix, keys, stops)
    job.names += used
    requests = _missing(task, cache.prompts, stored)
    if requests or (agreement and agreement.stored() is None):
        with job.naming(name):
            for part in _completions(job, requests, agreement, stops, meta["eos_token_ids"]):
                summary = {**part.summary, STOP: list(stops)}
                job.keep(item, key, job.stamped(part, summary))
    if agreement:
        job.names.append(agreement.name)
    return {
        "completions": prefix,
        "engine": agreement and agreement.stored(),
        "prompts": {prompt.id: prompt_key(prompt) for prompt in cache.prompts},
        "decoding": {**task.decoding(), **engine},
        "stop": list(stops),
        "chat_template": meta["chat_template"],
        "too_long": meta["too_long"],
        "data": meta["asked_definition"],
        "data_checksum": {PROMPTS: meta["checksum"][PROMPTS]},
        "items": meta["items"],
    }


def _missing(
    task: Judged, prompts: Sequence[Prompt], stored: Mapping[str, Completion]
) -> list[GenerationRequest]:
    """Return a request for each prompt that lacks samples; prompts of equal tokens are asked once."""
    requests: dict[str, GenerationRequest] = {}
    for prompt in prompts:
        key = prompt_key(prompt)
        lacking = tuple(n for n in range(task.sampling.n) if sample_key(key, n) not in stored)
        if lacking:
            requests[key] = GenerationRequest(
                key, prompt.tokens, prompt.max_new_tokens, lacking, task.sampling
            )
    return list(requests.values())


def _completions(
    job: Job,
    requests: Sequence[GenerationRequest],
    agreement: Agreement | None,
    stops: Sequence[str],
    eos: Sequence[int],
) -> Iterator[StoredScore]:
    """Yield tables of COMPLETIONS, by the built-in engine or by vLLM, whose agreement is measured."""
    tokenizer = _tokenizer(job)
    stopping, vocabulary = stopping_with(tokenizer, eos, stops), vocabulary_size(tokenizer)
    if agreement is None:
        parts = job.session.backend.answers(requests, stopping, vocabulary=vocabulary)
    else:
        parts = agreement.measured(requests, stopping, vocabulary)

    def row(key: AnswerKey, answer: Answer) -> dict[str, Any]:
        request = requests[key.request]
        return {
            "key": sample_key(request.id, key.sample),
            "text": answer.raw,
            "stop_reason": answer.stop_reason,
            "prompt_tokens": len(request.tokens),
            "completion_tokens": len(answer.tokens),
            "tokens": list(answer.tokens),
        }

    return _tables(requests, parts, row, COMPLETIONS)


def _tokenizer(job: Job) -> AnyTokenizer:
    return load_tokenizer(str(job.plan.tokenizer_folder), use_fast=job.plan.tokenizer.use_fast)


def _tables(
    requests: Sequence[GenerationRequest],
    parts: Iterator[dict[AnswerKey, Answer]],
    row: Row,
    schema: pa.Schema,
) -> Iterator[StoredScore]:
    """Yield a table of answers for each part as soon as it is done; a prompt counts once in each."""
    start = time.perf_counter()
    for answers in parts:
        rows = [row(key, answer) for key, answer in answers.items()]
        read = {key.request: len(requests[key.request].tokens) for key in answers}
        written = sum(len(answer.tokens) for answer in answers.values())
        spent = {
            "seconds": time.perf_counter() - start,
            "tokens_processed": sum(read.values()) + written,
        }
        yield StoredScore(pa.Table.from_pylist(rows, schema=schema), spent)
        start = time.perf_counter()
