"""Candidates ranked by the engine and by lm-evaluation-harness, on the same strings and model."""

from functools import partial
from typing import Any

from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from benchmarks.measure import measure
from evaluation.prefill.tokenizers import encode_pairs
from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.engine.loglikelihood import score_requests
from evaluation.scoring.engine.window import Request, fit_requests

Pairs = list[tuple[str, str]]
BATCH = {"cpu": 16, "cuda": 64}
"""Requests that the harness runs at once; on CPU the fastest of 1 and 16."""


REPEATS = 2
"""Turns that each takes; the faster one counts, as whatever else runs only slows things down."""


def compare(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    engine: Engine,
    tasks: list[Pairs],
) -> dict[str, Any]:
    """Runs both in turns, task by task, encoding included; times how much faster the engine is."""
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
    encoded = encode_pairs(tokenizer, pairs)
    requests = [Request(tuple(context), tuple(end)) for context, end in encoded]
    window = engine.model.config.max_position_embeddings
    fitted = fit_requests(requests, max_length=window, prefix_token=tokenizer.eos_token_id)
    return [score.logprob for score in score_requests(engine, fitted.requests)]


def run_peer(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, pairs: Pairs
) -> list[float]:
    batch = BATCH[model.device.type]
    peer = HFLM(pretrained=model, tokenizer=tokenizer, batch_size=batch, device=model.device.type)
    asked = [
        Instance(request_type="loglikelihood", doc={}, arguments=pair, idx=i)
        for i, pair in enumerate(pairs)
    ]
    return [float(logprob) for logprob, _ in peer.loglikelihood(asked, disable_tqdm=True)]
