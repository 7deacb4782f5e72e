"""Every class is scored as by its own forward pass: windows, scaled positions, other parts."""

import numpy as np
import pytest
import torch
import transformers

from evaluation.errors import ScoringError
from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.engine.rows import score_requests
from evaluation.scoring.window import Request
from tests.scoring import tiny

ORIGINAL, LONGEST = 16, 128
WINDOW = {"sliding_window": 4, "layer_types": ["sliding_attention"] * 3}
NO_IDS = {"bos_token_id": None, "eos_token_id": None}


def scaled(kind: str, **keys: float) -> tuple[str, dict[str, object]]:
    """Rotary scaling as configurations have it that transformers reads."""
    rope = {"rope_theta": 10_000.0, "rope_type": kind, "factor": 8.0, **keys}
    return "LlamaForCausalLM", {"rope_parameters": rope}


CLASSES = {
    "Llama heeds no window": ("LlamaForCausalLM", WINDOW),
    "OLMo heeds no window": ("OlmoForCausalLM", {**WINDOW, "eos_token_id": None}),
    "Mistral's windows in all layers, whatever their types": ("MistralForCausalLM", {"sliding_window": 4,
        "layer_types": ["full_attention"] * 3}),
    "Qwen2 has none unless told to": ("Qwen2ForCausalLM", {"sliding_window": 4}),
    "Qwen2's windows in the last layers": ("Qwen2ForCausalLM", {"sliding_window": 4,
        "use_sliding_window": True, "max_window_layers": 1}),
    "Gemma4 has another width in each type of layer": ("Gemma4ForCausalLM", {"sliding_window": 4,
        "head_dim": 8, "global_head_dim": 16, "hidden_size_per_layer_input": 0, "num_kv_shared_layers": 0,
            "layer_types": ["sliding_attention", "sliding_attention", "full_attention"],
                "vocab_size_per_layer_input": 40}),
    "Gemma3's windows by types": ("Gemma3ForCausalLM", {"sliding_window": 4, "head_dim": 8,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention"]}),
    "OLMo3's windows by a pattern": ("Olmo3ForCausalLM", {"sliding_window": 4, "eos_token_id": None}),
    "GPT2 learns its positions": ("GPT2LMHeadModel", NO_IDS),
    "linear positions": scaled("linear"),
    "YaRN": scaled("yarn", original_max_position_embeddings=ORIGINAL),
    "Llama 3's positions": scaled("llama3", low_freq_factor=1.0, high_freq_factor=4.0,
        original_max_position_embeddings=ORIGINAL),
}  # fmt: skip


def model_of(name: str, keys: dict[str, object]) -> transformers.PreTrainedModel:
    torch.manual_seed(0)
    return tiny.build(name, **{"max_position_embeddings": LONGEST} | keys)


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("row_tokens", [8, 200])
def test_scores_are_those_of_the_class(name, row_tokens):
    """Also of requests longer than a packed row is meant to be, or than the original positions."""
    model = model_of(*CLASSES[name])
    engine = Engine(model, row_tokens=row_tokens, device="cpu")
    random = np.random.default_rng(0)
    text = [tuple(random.integers(0, tiny.VOCABULARY, n).tolist()) for n in (3, 16, 32, 128, 128)]
    asked = [Request(row[:-2], row[-2:]) for row in text] + [Request(text[3][:20], (5, 6, 7))]
    scores = tiny.logprobs(engine, asked)
    plain = [tiny.plain_score(model, request) for request in asked]
    np.testing.assert_allclose(scores, plain, atol=1e-4, rtol=0)
    nats = [-float(tiny.plain_logprobs(model, row).sum()) for row in text[3:]]
    np.testing.assert_allclose(tiny.text_nats(engine, torch.tensor(text[3:]))[0], nats, rtol=1e-6)
    if "rope_parameters" in CLASSES[name][1]:
        unscaled = tiny.plain_score(model_of("LlamaForCausalLM", {}), asked[3])
        assert abs(unscaled - scores[3]) > 1e-2


def test_what_a_window_hides_is_compared_before_it_matters():
    scored = Engine(
        model_of("MistralForCausalLM", {"sliding_window": 50}), row_tokens=64, device="cpu"
    )
    scored.windows = {"": None}
    score_requests(scored, [Request((1, 2), (3,))])  # no longer than the window
    with pytest.raises(ScoringError, match="MistralForCausalLM cannot be scored: its own"):
        score_requests(scored, [Request(tuple(i % 40 for i in range(60)), (3,))])
