"""Tier5: what a model writes after each prompt, stored sample by sample; grading is another step.

A completion is stored whole, with the text behind its stop string, so that other stop strings cut
it again. Only where it ended at a string that is no stop any more has the model to go on.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from evaluation.prefill.caches import PROMPTS
from evaluation.prefill.schema import Prompt
from evaluation.prefill.tokenizers import load_tokenizer, vocabulary_size
from evaluation.scoring.answers import Answer, AnswerKey, GenerationRequest, Stopping
from evaluation.scoring.stopping import stopping_with
from evaluation.scoring.stored_completions import (
    SCHEMA,
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

if TYPE_CHECKING:
    from evaluation.prefill.caches import GenerationCache
    from evaluation.scoring.job import Job


def complete_task(job: "Job", name: str, cache: "GenerationCache") -> dict[str, Any]:
    """Generates what is missing of a task; returns what the job's record says of it."""
    meta = cache.meta
    task = judged_task(job.plan.suite.generation_tasks[name], meta)
    stops = (*task.stop, *meta["end_strings"])
    engine = job.plan.config.generation.decoding()
    key = job.key(
        {
            "protocol": TIERS["tier5"].protocol,
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
            stopping = _stopping(job, stops, meta["eos_token_ids"])
            for part in _tables(requests, _answers(job, requests, agreement, *stopping)):
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
    """A request for each prompt that lacks samples; prompts of equal tokens are asked once."""
    requests: dict[str, GenerationRequest] = {}
    for prompt in prompts:
        key = prompt_key(prompt)
        lacking = tuple(n for n in range(task.sampling.n) if sample_key(key, n) not in stored)
        if lacking:
            requests[key] = GenerationRequest(
                key, prompt.tokens, prompt.max_new_tokens, lacking, task.sampling
            )
    return list(requests.values())


def _stopping(job: "Job", stops: Sequence[str], eos: Sequence[int]) -> tuple[Stopping, int]:
    """When answers end, and how many ids there are to choose from."""
    plan = job.plan
    tokenizer = load_tokenizer(str(plan.tokenizer_folder), use_fast=plan.tokenizer.use_fast)
    return stopping_with(tokenizer, eos, stops), vocabulary_size(tokenizer)


def _answers(
    job: "Job",
    requests: Sequence[GenerationRequest],
    agreement: Agreement | None,
    stopping: Stopping,
    vocabulary: int,
) -> Iterator[dict[AnswerKey, Answer]]:
    """By this project's own engine, or by vLLM, whose agreement with it is measured."""
    if agreement is None:
        return job.session.backend.answers(requests, stopping, vocabulary=vocabulary)
    return agreement.measured(requests, stopping, vocabulary)


def _tables(
    requests: Sequence[GenerationRequest], parts: Iterator[dict[AnswerKey, Answer]]
) -> Iterator[StoredScore]:
    """Tables of SCHEMA, each as soon as its samples are done."""
    start = time.perf_counter()
    for answers in parts:
        rows = [_row(requests[key.request], key.sample, one) for key, one in answers.items()]
        read = {row["key"].rpartition("-")[0]: row["prompt_tokens"] for row in rows}
        spent = {
            "seconds": time.perf_counter() - start,
            "tokens_processed": sum(read.values()) + sum(row["completion_tokens"] for row in rows),
        }
        yield StoredScore(pa.Table.from_pylist(rows, schema=SCHEMA), spent)
        start = time.perf_counter()


def _row(request: GenerationRequest, sample: int, answer: Answer) -> dict[str, Any]:
    return {
        "key": sample_key(request.id, sample),
        "text": answer.raw,
        "stop_reason": answer.stop_reason,
        "prompt_tokens": len(request.tokens),
        "completion_tokens": len(answer.tokens),
        "tokens": list(answer.tokens),
    }
