"""Tier4 and Tier5: generate completions of prompts and store them; another step verifies them.

A completion is stored whole, with the text after its stop string, so that it can be cut again at other
stop strings. It is generated again only if it ended at a string that is no longer a stop string. The
prompts of all probes and tasks are answered in one queue: a batch empties at its end, when the longest
answers are still being written.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import pyarrow as pa

from evaluation.prefill.caches import PROMPTS, Prompt, PromptCache
from evaluation.prefill.tokenizers import stage_tokenizer
from evaluation.scoring.answers import (
    GREEDY,
    Answer,
    AnswerKey,
    GenerationRequest,
    cut_again,
    stopping_with,
)
from evaluation.scoring.loop import Part, Planned, ScoredItem, Scorer, Wanted
from evaluation.scoring.session import Job
from evaluation.scoring.stored_completions import (
    COMPLETIONS,
    STOP,
    prompt_key,
    sample_key,
)
from evaluation.scoring.vllm.engine import Vllm
from evaluation.settings.generation import Sampling
from evaluation.settings.provided import settled_task
from evaluation.settings.tiers import TIERS
from evaluation.store import Rows

log = logging.getLogger(__name__)

Answers = dict[AnswerKey, Answer]


class Prompts(NamedTuple):
    """An item's prompts, those of equal tokens once, and how they are completed."""

    by_key: dict[str, Prompt]
    sampling: Sampling
    eos: list[int]
    stops: tuple[str, ...]

    def requests(self, job: Job, keys: Sequence[str]) -> Iterator[GenerationRequest]:
        """Yield requests for some samples."""
        stopping = stopping_with(stage_tokenizer(job.plan), self.eos, self.stops)
        for key, samples in groupby(keys, lambda key: key.rpartition("-")[0]):
            prompt = self.by_key[key]
            numbers = tuple(int(sample.rpartition("-")[2]) for sample in samples)
            yield GenerationRequest(
                key, prompt.tokens, prompt.max_new_tokens, numbers, self.sampling, stopping
            )


def plan_probes(job: Job, probes: Mapping[str, PromptCache]) -> Planned:
    """Return the probes of each chat template and set of stop strings as an item, answered greedily."""
    cache = probes[job.plan.name]
    meta = cache.meta
    items = []
    for chat in meta["chats"]:
        prompts = [prompt for prompt in cache.prompts if prompt.id in set(chat["probes"])]
        data = _prompts(job, prompts, GREEDY, chat["eos_token_ids"], chat["stop"])
        items.append(_item(job, "probes", _key(job, "tier4", data, {}), data, answer_all))
    entry = {
        "chats": [
            {**chat, "answers": item.rows.prefix}
            for chat, item in zip(meta["chats"], items, strict=True)
        ],
        "prompts": {prompt.id: prompt_key(prompt) for prompt in cache.prompts},
        "texts": {prompt.id: prompt.prompt for prompt in cache.prompts},
        "data": meta["definition"],
        "data_checksum": meta["checksum"],
        "items": meta["items"],
    }
    return Planned(items, lambda: entry)


def plan_generation_tasks(job: Job, tasks: Mapping[str, PromptCache]) -> Planned:
    """Return the samples of each task as an item."""
    planned = {name: _task(job, name, cache) for name, cache in tasks.items()}
    return Planned(
        [item for item, _ in planned.values()],
        lambda: {"tasks": {name: entry() for name, (_, entry) in planned.items()}},
    )


def _task(
    job: Job, name: str, cache: PromptCache
) -> tuple[ScoredItem, Callable[[], dict[str, Any]]]:
    """Return a task's item, and what returns its entry of the record once it is stored."""
    meta = cache.meta
    task = settled_task(job.plan.suite.generation_tasks[name], meta)
    engine = job.plan.config.generation.decoding
    stops = (*task.stop, *meta["end_strings"])
    data = _prompts(job, cache.prompts, task.sampling, meta["eos_token_ids"], stops)
    key = _key(job, "tier5", data, engine)
    item = _item(job, name, key, data, answer_all_by_vllm if engine else answer_all)

    def entry() -> dict[str, Any]:
        other: dict[str, Any] | None = None
        if engine:
            versions = {summary["vllm"] for summary in item.rows.used.values()}
            other = {"name": "vllm", "version": " and ".join(sorted(versions))}
        return {
            "completions": item.rows.prefix,
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

    return item, entry


def _prompts(
    job: Job,
    prompts: Sequence[Prompt],
    sampling: Sampling,
    eos: Sequence[int],
    stops: Sequence[str],
) -> Prompts:
    """Return prompts; an answer ends at the ids of the tokenizer and of the checkpoint's configuration."""
    by_key = {prompt_key(prompt): prompt for prompt in prompts}
    return Prompts(by_key, sampling, sorted({*eos, *job.checkpoint.end_tokens}), tuple(stops))


def _item(job: Job, name: str, key: Mapping[str, Any], data: Prompts, score: Scorer) -> ScoredItem:
    def is_complete(row: Mapping[str, Any]) -> bool:
        return cut_again(row["text"], row["stop_reason"], data.stops) is not None

    rows = Rows(job.store, f"completions-{name}", key, is_complete)
    keys = [sample_key(key, n) for key in data.by_key for n in range(data.sampling.n)]
    return ScoredItem(name, rows, keys, score, data)


def _key(job: Job, tier: str, data: Prompts, engine: Mapping[str, str]) -> dict[str, Any]:
    # Completions of some tokenizers depend on their prompts.
    read = {} if job.tokenizer["decodes_anywhere"] else {"text": "after the prompt"}
    return job.key(
        {
            "protocol": TIERS[tier].scoring,
            "tokenizer": job.tokenizer["fingerprint"],
            "sampling": data.sampling.model_dump(exclude={"n"}),
            "eos_token_ids": data.eos,
            **read,
            **engine,
        }
    )


def answer_all(job: Job, wanted: Wanted) -> Iterator[list[Part]]:
    """Complete all prompts with the built-in engine."""
    return _answered(job, wanted, job.backend.answers, dict)


def answer_all_by_vllm(job: Job, wanted: Wanted) -> Iterator[list[Part]]:
    """Complete all prompts with vLLM."""
    vllm = Vllm(job)
    job.backend.unload()
    return _answered(job, wanted, vllm.answers, lambda: {"vllm": vllm.version})


def _answered(
    job: Job,
    wanted: Wanted,
    answers: Callable[..., Iterator[Answers]],
    about: Callable[[], Mapping[str, Any]],
) -> Iterator[list[Part]]:
    asked = [
        (item, request)
        for item, keys in wanted.items()
        for request in item.data.requests(job, keys)
    ]
    requests = [request for _, request in asked]
    names = ", ".join(item.name for item in wanted)
    log.info("%d prompts in one queue: %s", len(requests), names)
    with job.naming(names):
        parts = answers(requests, vocabulary=stage_tokenizer(job.plan).rows)
        yield []
        for part in parts:
            by_item: dict[ScoredItem, Answers] = {}
            for key, answer in part.items():
                by_item.setdefault(asked[key.request][0], {})[key] = answer
            yield [
                Part(item, *completion_table(requests, its), {STOP: item.data.stops, **about()})
                for item, its in by_item.items()
            ]


def completion_table(
    requests: Sequence[GenerationRequest], answers: Answers
) -> tuple[pa.Table, int]:
    """Return a table of COMPLETIONS for answers, and the number of tokens read once and written."""
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
    tokens = sum(read.values()) + sum(len(answer.tokens) for answer in answers.values())
    return pa.Table.from_pylist(rows, schema=COMPLETIONS), tokens
