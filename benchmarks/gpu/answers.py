"""Answers beside those of transformers' `generate` in padded batches.

Prompts are the contexts of a task's sample, each once. All answers are greedy and of one length:
random weights end no sentence.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from transformers import GenerationConfig, PreTrainedModel

from benchmarks.gpu.data import Task
from benchmarks.measure import measure, peak_bytes
from evaluation.scoring.answers import AnswerKey, GenerationRequest, Stopping
from evaluation.scoring.engine.generation.generate import generate

ROWS = {"cpu": 8, "cuda": 64}
"""Answers at once, of ours as a job has them, and of padded batches."""

NEW = 64
"""Tokens of an answer."""

Ids = tuple[int, ...]
Write = Callable[[Sequence[Ids]], list[Ids]]


def figures(model: PreTrainedModel, sample: Task) -> dict[str, Any]:
    """Tokens a second of both ways; how much faster ours is, and how many answers agree."""
    prompts = list({one.context: None for one in sample.requests})
    ours, answers = _measured(model, prompts, partial(_by_engine, model))
    padded, others = _measured(model, prompts, partial(_padded, model))
    same = sum(one == other for one, other in zip(answers, others, strict=True))
    beside = {
        "times_faster": padded["seconds"] / ours["seconds"],
        "same_answers": same / len(prompts),
    }
    return {
        "prompts": len(prompts),
        "new_tokens": NEW,
        "engine": ours,
        "padded": {**padded, **beside},
    }


def _measured(
    model: PreTrainedModel, prompts: list[Ids], write: Write
) -> tuple[dict[str, float], list[Ids]]:
    device = model.device
    write(prompts[: ROWS[device.type]])  # warm
    run = measure(device, partial(write, prompts))
    measured = {
        "seconds": run.seconds,
        "tokens_per_second": sum(map(len, run.result)) / run.seconds,
        "peak_memory_gb": peak_bytes(device) / 1e9,
    }
    return measured, run.result


def _by_engine(model: PreTrainedModel, prompts: Sequence[Ids]) -> list[Ids]:
    requests = [GenerationRequest(str(i), ids, NEW) for i, ids in enumerate(prompts)]
    parts = generate(
        model,
        requests,
        Stopping(frozenset(), (), lambda _: ""),
        vocabulary=model.config.vocab_size,
        batch=ROWS[model.device.type],
        device=model.device,
    )
    answers = {key: tuple(answer.tokens) for part in parts for key, answer in part.items()}
    return [answers[AnswerKey(i, 0)] for i in range(len(prompts))]


@torch.inference_mode()
def _padded(model: PreTrainedModel, prompts: Sequence[Ids]) -> list[Ids]:
    """Those of about one length together, padded on the left."""
    order = sorted(range(len(prompts)), key=lambda i: -len(prompts[i]))
    rows = ROWS[model.device.type]
    config = GenerationConfig(max_new_tokens=NEW, do_sample=False, pad_token_id=0)
    found: dict[int, Ids] = {}
    for start in range(0, len(order), rows):
        chosen = order[start : start + rows]
        longest = len(prompts[chosen[0]])
        ids = torch.zeros(len(chosen), longest, dtype=torch.long)
        mask = torch.zeros_like(ids)
        for row, index in enumerate(chosen):
            ids[row, longest - len(prompts[index]) :] = torch.tensor(prompts[index])
            mask[row, longest - len(prompts[index]) :] = 1
        ids, mask = ids.to(model.device), mask.to(model.device)
        written = model.generate(ids, attention_mask=mask, generation_config=config)
        found |= zip(chosen, map(tuple, written[:, longest:].tolist()), strict=True)
    return [found[i] for i in range(len(prompts))]
