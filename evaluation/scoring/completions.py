"""Tier4 and Tier5: generate completions of prompts and store them; another step verifies them.

A completion is stored whole, with the text after its stop string, so that it can be cut again at other
stop strings. It is generated again only if it ended at a string that is no longer a stop string. The
prompts of all probes and tasks are answered together, those of equal sampling in one queue: a batch
empties at its end, when the longest answers are still being written.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from evaluation.prefill.caches import PROMPTS, Prompt, PromptCache
from evaluation.prefill.tokenizers import stage_tokenizer
from evaluation.scoring.answers import (
    GREEDY,
    Answer,
    AnswersAbout,
    GenerationRequest,
    Requests,
    Stopping,
    cut_again,
)
from evaluation.scoring.loop import Part, Planned, ScoredItem, Wanted
from evaluation.scoring.session import Job
from evaluation.scoring.stored_completions import COMPLETIONS, STOP, prompt_key, sample_key
from evaluation.scoring.vllm.engine import vllm_answers
from evaluation.settings.generation import Sampling
from evaluation.settings.provided import settled_task
from evaluation.settings.tiers import TIERS
from evaluation.store import Rows

log = logging.getLogger(__name__)


class Samples:
    """An item's samples by key, those of prompts with equal tokens once, and how they are completed."""

    def __init__(
        self,
        job: Job,
        prompts: Sequence[Prompt],
        sampling: Sampling,
        eos: Sequence[int],
        stops: Sequence[str],
    ) -> None:
        keyed = {prompt_key(prompt): prompt for prompt in prompts}
        self.by_key = {
            sample_key(key, number): (prompt, number)
            for key, prompt in keyed.items()
            for number in range(sampling.n)
        }
        self.sampling, self.stops = sampling, tuple(stops)
        self.eos = sorted({*eos, *job.checkpoint.end_tokens})
        """Ids that end an answer: of the tokenizer and of the checkpoint's configuration."""

    def requests(self, job: Job, keys: Sequence[str]) -> Iterator[GenerationRequest]:
        """Yield the requests for some samples."""
        decode = stage_tokenizer(job.plan).decode_answer
        stopping = Stopping(frozenset(self.eos), self.stops, decode)
        for prompt, sample in map(self.by_key.__getitem__, keys):
            yield GenerationRequest(
                prompt.id, prompt.tokens, prompt.max_new_tokens, sample, self.sampling, stopping
            )


def plan_probes(job: Job, probes: Mapping[str, PromptCache]) -> Planned:
    """Return the probes of each chat template and set of stop strings as an item, answered greedily."""
    cache = probes[job.plan.name]
    meta = cache.meta
    items = []
    for chat in meta["chats"]:
        prompts = [prompt for prompt in cache.prompts if prompt.id in set(chat["probes"])]
        samples = Samples(job, prompts, GREEDY, chat["eos_token_ids"], chat["stop"])
        items.append(_item(job, "probes", TIERS["tier4"].scoring, samples, {}))
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
    samples = Samples(job, cache.prompts, task.sampling, meta["eos_token_ids"], stops)
    item = _item(job, name, TIERS["tier5"].scoring, samples, engine)

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
        }

    return item, entry


def _item(
    job: Job, name: str, protocol: Any, samples: Samples, engine: Mapping[str, str]
) -> ScoredItem:
    # Completions of some tokenizers depend on their prompts.
    read = {} if job.tokenizer["decodes_anywhere"] else {"text": "after the prompt"}
    key = job.key(
        {
            "protocol": protocol,
            "tokenizer": job.tokenizer["fingerprint"],
            "sampling": samples.sampling.model_dump(exclude={"n"}),
            "eos_token_ids": samples.eos,
            **read,
            **engine,
        }
    )

    def is_complete(row: Mapping[str, Any]) -> bool:
        return cut_again(row["text"], row["stop_reason"], samples.stops) is not None

    rows = Rows(job.store, f"completions-{name}", key, is_complete)
    score = answer_all_by_vllm if engine else answer_all
    return ScoredItem(name, rows, [*samples.by_key], score, samples)


def answer_all(job: Job, wanted: Wanted) -> Iterator[list[Part]]:
    """Complete all prompts with the built-in engine."""

    def answers(requests: Requests, vocabulary: int) -> Iterator[AnswersAbout]:
        return ((part, {}) for part in job.backend.answers(requests, vocabulary=vocabulary))

    return _answered(job, wanted, answers)


def answer_all_by_vllm(job: Job, wanted: Wanted) -> Iterator[list[Part]]:
    """Complete all prompts with vLLM."""
    job.backend.unload()
    return _answered(job, wanted, partial(vllm_answers, job))


def _answered(
    job: Job, wanted: Wanted, answers: Callable[[Requests, int], Iterator[AnswersAbout]]
) -> Iterator[list[Part]]:
    requests: dict[tuple[ScoredItem, str], GenerationRequest] = {
        (item, key): request
        for item, keys in wanted.items()
        for key, request in zip(keys, item.data.requests(job, keys), strict=True)
    }
    names = ", ".join(item.name for item in wanted)
    log.info("%d completions of %s", len(requests), names)
    with job.naming(names):
        parts = answers(requests, stage_tokenizer(job.plan).rows)
        yield []
        for part, about in parts:
            yield [
                Part(item, *_table(its, requests), {STOP: item.data.stops, **about})
                for item in wanted
                if (its := {key: answer for key, answer in part.items() if key[0] is item})
            ]


def _table(
    answers: Mapping[tuple[ScoredItem, str], Answer], requests: Requests
) -> tuple[pa.Table, int]:
    """Return a table of COMPLETIONS for answers, and the number of tokens read once and written."""
    rows = [
        {
            "key": key[1],
            "text": answer.raw,
            "stop_reason": answer.stop_reason,
            "prompt_tokens": len(requests[key].tokens),
            "completion_tokens": len(answer.tokens),
            "tokens": list(answer.tokens),
        }
        for key, answer in answers.items()
    ]
    prompts = {requests[key].tokens for key in answers}
    tokens = sum(map(len, prompts)) + sum(len(answer.tokens) for answer in answers.values())
    return pa.Table.from_pylist(rows, schema=COMPLETIONS), tokens
