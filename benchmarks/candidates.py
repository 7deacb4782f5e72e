"""Candidates ranked by the engine and by lm-evaluation-harness, on the same strings and model."""

from typing import Any

from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from benchmarks.measure import Measured, measure
from evaluation.prefill.encoding import encode_pair
from evaluation.scoring.engine import Engine
from evaluation.scoring.loglikelihood import score_requests
from evaluation.scoring.window import Request, fit_requests

Pairs = list[tuple[str, str]]
BATCH = {"cpu": 16, "cuda": 64}
"""Requests that the harness runs at once; on CPU the fastest of 1 and 16."""


def compare(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, engine: Engine, pairs: Pairs
) -> dict[str, Any]:
    """Runs both, encoding included, and says how many times faster the engine is."""
    engine_run = measure(engine.device, lambda: run_engine(engine, tokenizer, pairs))
    model.set_attn_implementation("sdpa")
    peer_run = measure(engine.device, lambda: run_peer(model, tokenizer, pairs))
    differences = [abs(a - b) for a, b in zip(engine_run.result, peer_run.result, strict=True)]
    return {
        "requests": len(pairs),
        "engine_seconds": engine_run.seconds,
        "lm_eval_seconds": peer_run.seconds,
        "times_faster": peer_run.seconds / engine_run.seconds,
        "largest_difference": max(differences),
        "engine_added_gb": _gigabytes(engine_run),
        "lm_eval_added_gb": _gigabytes(peer_run),
    }


def run_engine(engine: Engine, tokenizer: PreTrainedTokenizerBase, pairs: Pairs) -> list[float]:
    encoded = [encode_pair(tokenizer, *pair) for pair in pairs]
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


def _gigabytes(run: Measured[Any]) -> float:
    return run.added_bytes / 1e9
