"""Tier4: a model answers the probes, and each answer is checked."""

from typing import Any

import pyarrow as pa
import torch
from transformers import PreTrainedModel

from evaluation.grading.checks.run import run_checks
from evaluation.grading.rates import COLUMNS, summarize
from evaluation.prefill.probes import ProbeCache, Prompt
from evaluation.prefill.tokenizers import AnyTokenizer, vocabulary_size
from evaluation.scoring.engine.generation import Answer, GenerationRequest, Stopping, generate
from evaluation.store import StoredScore


def answer_probes(
    model: PreTrainedModel,
    tokenizer: AnyTokenizer,
    cache: ProbeCache,
    *,
    batch: int,
    device: str | torch.device,
) -> StoredScore:
    """Answers all prompts greedily, `batch` at once, and runs their checks.

    The table has `probe_rates.COLUMNS`; the summary also counts `tokens_processed`.

    Raises:
        NonFiniteError: where the model gives NaN or infinity.
        ScoringError: where a check itself fails.
    """

    def decode(tokens: list[int]) -> str:
        return str(
            tokenizer.decode(tokens, skip_special_tokens=False, clean_up_tokenization_spaces=False)
        )

    answers = generate(
        model,
        [
            GenerationRequest(prompt.id, prompt.tokens, prompt.max_new_tokens)
            for prompt in cache.prompts
        ],
        Stopping(frozenset(cache.meta["eos_token_ids"]), tuple(cache.meta["stop"]), decode),
        vocabulary=vocabulary_size(tokenizer),
        batch=batch,
        device=device,
    )
    rows = [check_answer(*pair) for pair in zip(cache.prompts, answers, strict=True)]
    table = pa.Table.from_pylist(rows, schema=COLUMNS)
    processed = sum(row["prompt_tokens"] + row["response_tokens"] for row in rows)
    return StoredScore(table, {**summarize(table), "tokens_processed": processed})


def check_answer(prompt: Prompt, answer: Answer) -> dict[str, Any]:
    """A row of the table; white space around an answer is no part of it for the checks."""
    results = run_checks(prompt.id, prompt.checks, answer.text.strip())
    return {
        "id": prompt.id,
        "category": prompt.category,
        "prompt": prompt.prompt,
        "response": answer.text,
        "stop_reason": answer.stop_reason,
        "prompt_tokens": len(prompt.tokens),
        "response_tokens": len(answer.tokens),
        "checks": [vars(result) for result in results],
    }


def generations(score: StoredScore) -> list[dict[str, Any]]:
    """Rows of `tier4_sft_native_generations.jsonl`."""
    columns = [name for name in COLUMNS.names if name != "checks"]
    rows: list[dict[str, Any]] = score.table.select(columns).to_pylist()
    return rows
