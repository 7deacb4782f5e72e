"""Tier2 beside the model's bare body and beside a head that does the least it can."""

from functools import partial
from typing import Any

import torch
from torch.nn import functional
from transformers import PreTrainedModel

from benchmarks.measure import measure
from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.engine.loglikelihood import score_blocks


def compare(model: PreTrainedModel, engine: Engine, tokens: torch.Tensor) -> dict[str, Any]:
    """Takes turns on batches of blocks, (blocks, length), so that all meet the same machine.

    `body_fraction` is the engine's speed over the body's, with the time of the head taken off the
    engine's: 1 means that masks, packing and sums cost nothing.
    """
    blocks, length = tokens.shape
    step = max(1, engine.row_tokens // length)
    seconds = dict.fromkeys(("body", "head", "engine"), 0.0)
    added = 0
    for start in range(0, blocks, step):
        batch = tokens[start : start + step]
        model.set_attn_implementation("sdpa")
        body = measure(engine.device, partial(_body, model, batch))
        head = measure(engine.device, partial(_head, model, body.result, batch))
        scored = measure(engine.device, partial(score_blocks, engine, batch))
        for name, run in (("body", body), ("head", head), ("engine", scored)):
            seconds[name] += run.seconds
        added = max(added, scored.added_bytes)
    count = tokens.numel()
    return {
        "tokens": count,
        "sequence_length": length,
        "engine_tokens_per_second": count / seconds["engine"],
        "body_tokens_per_second": count / seconds["body"],
        "head_tokens_per_second": count / seconds["head"],
        "body_fraction": seconds["body"] / (seconds["engine"] - seconds["head"]),
        "engine_flops": count * flops_per_token(engine, length) / seconds["engine"],
        "engine_added_gb": added / 1e9,
        "all_logits_gb": step * length * engine.vocab_size * 4 / 1e9,
    }


@torch.inference_mode()
def _body(model: PreTrainedModel, batch: torch.Tensor) -> torch.Tensor:
    """Hidden states, (B, T, D)."""
    output = model.base_model(input_ids=batch.to(model.device), use_cache=False)
    hidden: torch.Tensor = output.last_hidden_state
    return hidden


@torch.inference_mode()
def _head(model: PreTrainedModel, hidden: torch.Tensor, batch: torch.Tensor) -> float:
    """Logits and cross entropy in chunks, in float32, as a plain loop would do it."""
    rows = hidden[:, :-1].flatten(0, 1)
    targets = batch[:, 1:].flatten().to(model.device)
    layer = model.get_output_embeddings()
    total = 0.0
    for start in range(0, len(rows), 1024):
        chunk, target = rows[start : start + 1024], targets[start : start + 1024]
        logits = functional.linear(chunk, layer.weight, layer.bias).float()
        total += float(functional.cross_entropy(logits, target, reduction="sum"))
    return total


def flops_per_token(engine: Engine, length: int) -> float:
    """2 per weight of body and head, and causal attention over half the block on average."""
    per_token, per_pair = engine.costs
    head = engine.head.weight.numel()
    return 2 * (per_token + head + per_pair * length / 2)
