"""Positions beyond a model's original length, and requests longer than a packed row is meant to be."""

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.engine.loglikelihood import score_blocks, score_requests
from evaluation.scoring.engine.window import Request
from tests.scoring import tiny

ORIGINAL, LONGEST = 16, 128
SCALED = {
    "linear": {"rope_type": "linear", "factor": 8.0},
    "yarn": {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": ORIGINAL},
    "llama3": {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": ORIGINAL,
    },
}
"""Rotary scaling as configurations have it that transformers reads."""


def model(scaling: dict[str, object]) -> LlamaForCausalLM:
    shape = tiny.SHAPE | {"max_position_embeddings": LONGEST}
    torch.manual_seed(0)
    config = LlamaConfig(**shape, rope_parameters={"rope_theta": 10_000.0, **scaling})
    return LlamaForCausalLM(config).eval().requires_grad_(False)


@pytest.mark.parametrize("name", SCALED)
@pytest.mark.parametrize("row_tokens", [8, 200])
def test_scaled_positions_score_as_in_transformers(name: str, row_tokens: int) -> None:
    scored = model(SCALED[name])
    engine = Engine(scored, row_tokens=row_tokens, device="cpu")
    random = np.random.default_rng(0)
    blocks = random.integers(0, tiny.VOCABULARY, (3, LONGEST))
    plain = [-float(tiny.plain_logprobs(scored, tuple(row.tolist())).sum()) for row in blocks]
    nats = score_blocks(engine, torch.tensor(blocks)).nats
    np.testing.assert_allclose(nats, plain, rtol=1e-6)
    lengths = (3, ORIGINAL, 2 * ORIGINAL, LONGEST)
    rows = [tuple(random.integers(0, tiny.VOCABULARY, length).tolist()) for length in lengths]
    asked = [Request(row[:-2], row[-2:]) for row in rows]
    found = [score.logprob for score in score_requests(engine, asked)]
    np.testing.assert_allclose(
        found, [tiny.plain_score(scored, one) for one in asked], atol=1e-4, rtol=0
    )
    unscaled = model({"rope_type": "default"})
    assert abs(tiny.plain_score(unscaled, asked[-1]) - found[-1]) > 1e-2
