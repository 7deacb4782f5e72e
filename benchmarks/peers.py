"""Compare the engine with its peers: lm-evaluation-harness for candidates, the bare model for text."""

from functools import partial
from typing import Any

import torch
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM
from torch.nn import functional
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from benchmarks.measure import measure
from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.engine.rows import score_blocks, score_requests
from evaluation.scoring.window import Request, Window
from evaluation.tokenizers.encoding import encode_pairs
from evaluation.tokenizers.loading import load_tokenizer

Pairs = list[tuple[str, str]]
BATCH = {"cpu": 16, "cuda": 64}
"""Batch size of the harness; on CPU the faster of 1 and 16."""

REPEATS = 2
"""Number of runs of each; the fastest counts, as other processes can only slow a run down."""


def compare_candidates(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    engine: Engine,
    tasks: list[Pairs],
) -> dict[str, Any]:
    """Run both in turns, task by task, including tokenization; return speeds, differences and memory."""
    ours = theirs = difference = 0.0
    memory = [0, 0]
    for pairs in tasks:
        for_engine = partial(run_engine, engine, tokenizer, pairs)
        for_peer = partial(run_peer, model, tokenizer, pairs)
        turns = [
            (measure(engine.device, for_engine), measure(engine.device, for_peer))
            for _ in range(REPEATS)
        ]
        ours += min(own.seconds for own, _ in turns)
        theirs += min(peer.seconds for _, peer in turns)
        scores = zip(turns[0][0].result, turns[0][1].result, strict=True)
        difference = max(difference, *(abs(a - b) for a, b in scores))
        for own, peer in turns:
            memory = [max(memory[0], own.added_bytes), max(memory[1], peer.added_bytes)]
    return {
        "requests": sum(map(len, tasks)),
        "engine_seconds": ours,
        "lm_eval_seconds": theirs,
        "times_faster": theirs / ours,
        "largest_difference": difference,
        "engine_added_gb": memory[0] / 1e9,
        "lm_eval_added_gb": memory[1] / 1e9,
    }


def run_engine(engine: Engine, tokenizer: PreTrainedTokenizerBase, pairs: Pairs) -> list[float]:
    encoded = encode_pairs(load_tokenizer(tokenizer.name_or_path, use_fast=True), pairs)
    requests = [Request(tuple(one.context), tuple(one.continuation)) for one in encoded]
    window = Window(engine.model.config.max_position_embeddings, tokenizer.eos_token_id)
    fitted = [window.fit(request)[0] for request in requests]
    return [score.logprob for score in score_requests(engine, fitted)]


def run_peer(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, pairs: Pairs
) -> list[float]:
    batch = BATCH[model.device.type]
    peer = HFLM(pretrained=model, tokenizer=tokenizer, batch_size=batch, device=model.device.type)
    requests = [
        Instance(request_type="loglikelihood", doc={}, arguments=pair, idx=i)
        for i, pair in enumerate(pairs)
    ]
    return [float(logprob) for logprob, _ in peer.loglikelihood(requests, disable_tqdm=True)]


def compare_blocks(model: PreTrainedModel, engine: Engine, tokens: torch.Tensor) -> dict[str, Any]:
    """Run body, head and engine in turns on batches of blocks, (blocks, length).

    `body_fraction` is the engine's speed relative to the body's, where the head's time is subtracted
    from the engine's: 1 means that masks, packing and sums cost nothing.
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
    """Return hidden states, (B, T, D)."""
    output = model.base_model(input_ids=batch.to(model.device), use_cache=False)
    hidden: torch.Tensor = output.last_hidden_state
    return hidden


@torch.inference_mode()
def _head(model: PreTrainedModel, hidden: torch.Tensor, batch: torch.Tensor) -> float:
    """Compute logits and cross entropy in chunks, in float32, by a plain loop."""
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
    """Return 2 per weight of body and head, plus causal attention over half the block on average."""
    model, config = engine.model, engine.model.config
    weights = sum(weight.numel() for weight in model.base_model.parameters())
    weights += model.get_output_embeddings().weight.numel()
    weights -= model.get_input_embeddings().weight.numel()
    return 2.0 * (weights + config.num_hidden_layers * config.hidden_size * length)
