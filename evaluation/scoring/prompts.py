"""Tier4: what a model says to each prompt, stored prompt by prompt; grading is another step."""

import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from evaluation.files import fingerprint
from evaluation.prefill.caches import ProbeCache
from evaluation.prefill.schema import ProbePrompt
from evaluation.prefill.tokenizers import AnyTokenizer, vocabulary_size
from evaluation.scoring.answers import Answer, GenerationRequest
from evaluation.scoring.backend import Backend
from evaluation.scoring.stopping import stopping_with
from evaluation.store import StoredScore

SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("prompt", pa.string()),
        ("response", pa.string()),
        ("stop_reason", pa.string()),
        ("prompt_tokens", pa.int32()),
        ("response_tokens", pa.int32()),
    ]
)
"""One row for each prompt; `key` is its `prompt_key`."""


def prompt_key(prompt: ProbePrompt) -> str:
    """What an answer depends on beside checkpoint, decoding settings and stop rules."""
    return fingerprint([list(prompt.tokens), prompt.max_new_tokens])


def answer_prompts(
    backend: Backend, tokenizer: AnyTokenizer, cache: ProbeCache, prompts: list[ProbePrompt]
) -> Iterator[StoredScore]:
    """Answers prompts of a cache greedily, a table of SCHEMA for each part as it is done.

    Raises NonFiniteError where the model gives NaN or infinity.
    """
    requests = [
        GenerationRequest(prompt.id, prompt.tokens, prompt.max_new_tokens) for prompt in prompts
    ]
    stopping = stopping_with(tokenizer, cache.meta["eos_token_ids"], cache.meta["stop"])
    start = time.perf_counter()
    parts = backend.answers(requests, stopping, vocabulary=vocabulary_size(tokenizer))
    for part in parts:
        rows = [_row(prompts[key.request], answer) for key, answer in part.items()]
        processed = sum(row["prompt_tokens"] + row["response_tokens"] for row in rows)
        spent = {"seconds": time.perf_counter() - start, "tokens_processed": processed}
        yield StoredScore(pa.Table.from_pylist(rows, schema=SCHEMA), spent)
        start = time.perf_counter()


def _row(prompt: ProbePrompt, answer: Answer) -> dict[str, Any]:
    return {
        "key": prompt_key(prompt),
        "prompt": prompt.prompt,
        "response": answer.text,
        "stop_reason": answer.stop_reason,
        "prompt_tokens": len(prompt.tokens),
        "response_tokens": len(answer.tokens),
    }
