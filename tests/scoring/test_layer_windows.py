"""What a token of each layer may look at: what the model's class says, and nothing else."""

import numpy as np
import pytest
import torch
import transformers
from transformers import FalconConfig, FalconForCausalLM

from evaluation.errors import ScoringError
from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.engine.loglikelihood import score_requests
from evaluation.scoring.engine.window import Request
from tests.scoring import tiny
from tests.scoring.test_engine import logprobs

WINDOW = {"sliding_window": 4, "layer_types": ["sliding_attention"] * 3}
WINDOWS = {
    "Llama heeds none": (transformers.LlamaForCausalLM, WINDOW),
    "OLMo heeds none": (transformers.OlmoForCausalLM, {**WINDOW, "eos_token_id": None}),
    "Mistral in all layers, whatever their types": (
        transformers.MistralForCausalLM,
        {"sliding_window": 4, "layer_types": ["full_attention"] * 3},
    ),
    "Qwen2 unless it is said": (transformers.Qwen2ForCausalLM, {"sliding_window": 4}),
    "Qwen2 in the last layers": (transformers.Qwen2ForCausalLM, {"sliding_window": 4, "use_sliding_window": True, "max_window_layers": 1}),
    "Gemma3 by types": (
        transformers.Gemma3ForCausalLM,
        {
            "sliding_window": 4,
            "head_dim": 8,
            "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
        },
    ),
    "OLMo3 by a pattern": (transformers.Olmo3ForCausalLM, {"sliding_window": 4, "eos_token_id": None}),
}  # fmt: skip


@pytest.mark.parametrize("name", WINDOWS)
def test_windows_are_those_of_the_class(name):
    model_class, keys = WINDOWS[name]
    torch.manual_seed(0)
    model = model_class(model_class.config_class(**tiny.SHAPE, **keys)).eval()
    asked = [
        Request(tuple(range(1, 30)), (5, 6, 7)),
        Request(tuple(range(1, 30)), (8,)),
        Request(tuple(range(1, 13)), (9, 7)),
    ]
    scores = logprobs(Engine(model, row_tokens=64, device="cpu"), asked)
    plain = [tiny.plain_score(model, request) for request in asked]
    np.testing.assert_allclose(scores, plain, atol=1e-4, rtol=0)


@pytest.mark.parametrize(
    ("heeded", "given"), [(None, 4), (4, None), (4, {"attention_chunk_size": 6})]
)
def test_what_a_window_hides_is_compared_before_it_matters(heeded, given, monkeypatch):
    """Whether the engine heeds a window that the class does not, or the class one that it does not."""
    keys = given if isinstance(given, dict) else {"sliding_window": given or 4}
    name = "Mistral" if heeded is None else "Llama"
    torch.manual_seed(0)
    model_class = getattr(transformers, f"{name}ForCausalLM")
    model = model_class(model_class.config_class(**tiny.SHAPE, **keys)).eval()
    monkeypatch.setattr("evaluation.scoring.engine.prepared.layer_windows", lambda _: heeded)
    scored = Engine(model, row_tokens=64, device="cpu")
    score_requests(scored, [Request((1, 2), (3,))])  # no longer than any window
    with pytest.raises(ScoringError, match=f"{name}ForCausalLM cannot be scored: its own"):
        score_requests(scored, [Request(tuple(range(1, 20)), (3,))])


def test_a_class_that_takes_no_mask_is_one_sentence():
    config = FalconConfig(
        vocab_size=40, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, alibi=True
    )
    with pytest.raises(ScoringError, match="FalconForCausalLM cannot be scored: it does not take"):
        Engine(FalconForCausalLM(config).eval(), row_tokens=64, device="cpu")
