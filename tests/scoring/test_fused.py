"""Fused layers beside those of their classes."""

import contextlib

import pytest
import torch
from transformers.models.llama.modeling_llama import LlamaRMSNorm

from evaluation.scoring.engine.attend import attention_by
from evaluation.scoring.engine.fused import fused_layers
from evaluation.scoring.engine.generation import generate as generating
from evaluation.scoring.engine.generation.kv_cache import ATTENTION
from tests.scoring import tiny
from tests.scoring.families import built
from tests.scoring.test_generation import asks, few_shot
from tests.scoring.test_static import answers

FUSED = {
    "LlamaForCausalLM": 3,
    "Qwen2ForCausalLM": 3,
    "SmolLM3ForCausalLM": 3,
    "GraniteForCausalLM": 0,  # its residuals are scaled
    "Qwen3ForCausalLM": 0,  # its queries and keys are normed
    "Glm4MoeForCausalLM": 0,  # half of each head is rotated; its first layer has no experts
    "GPT2LMHeadModel": 0,
}
"""Number of layers that run fused, of three."""


def count(model: torch.nn.Module) -> int:
    """How many layers of a model run fused within the block."""
    with attention_by(model, ATTENTION), fused_layers(model):
        return sum("forward" in vars(layer) for layer in model.modules())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", FUSED)
def test_layers_are_fused_where_that_gives_the_same(name: str, dtype: torch.dtype) -> None:
    model = built(name).to(dtype)
    before = {key: tensor.clone() for key, tensor in model.state_dict().items()}
    assert count(model) == FUSED[name]
    assert all(torch.equal(tensor, before[key]) for key, tensor in model.state_dict().items())
    assert not any("forward" in vars(layer) for layer in model.modules())


@pytest.mark.parametrize("name", tiny.MODELS)
def test_answers_are_those_of_the_class_s_own_layers(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, given = tiny.model(name), [*asks(20), *few_shot(5, shared=40, samples=(0, 1))]
    ours = answers(model, given, 6)
    monkeypatch.setattr(generating, "fused_layers", contextlib.nullcontext)
    assert answers(model, given, 6) == ours


def test_a_layer_that_computes_something_else_stays_as_it_is() -> None:
    class Shifted(LlamaRMSNorm):
        def forward(self, hidden: torch.Tensor) -> torch.Tensor:
            return super().forward(hidden) * 1.1

    model = tiny.build("LlamaForCausalLM")
    model.model.layers[1].post_attention_layernorm.__class__ = Shifted
    assert count(model) == 2


def test_joined_weights_take_no_more_memory() -> None:
    model = tiny.build("Qwen2ForCausalLM")
    count(model)
    for layer in model.model.layers:
        parts = [getattr(layer.self_attn, f"{name}_proj").weight for name in "qkv"]
        assert len({part.untyped_storage().data_ptr() for part in parts}) == 1
        assert parts[0].untyped_storage().nbytes() == sum(part.nbytes for part in parts)
        assert not any(part.is_inference() for part in parts)
