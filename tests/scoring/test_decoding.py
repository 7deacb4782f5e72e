"""Every class is decoded as it decodes itself, or refused."""

import logging

import pytest
import torch
from transformers import PreTrainedModel

from evaluation.errors import ScoringError
from evaluation.scoring.answers import LENGTH_ONLY, Answers, GenerationRequest
from evaluation.scoring.engine.backend import EngineBackend
from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.engine.rows import score_requests
from evaluation.scoring.window import Request
from evaluation.settings.computing import Scoring
from tests.scoring import tiny
from tests.scoring.test_generation import plain
from tests.scoring.tiny import built

CLASSES = {
    "LlamaForCausalLM": {},
    "GPT2LMHeadModel": {},
    "Gemma3ForCausalLM": {},
    "GraniteForCausalLM": {"logits_scaling": 4.0},  # it scales logits behind the head
    "CohereForCausalLM": {},
    "StableLmForCausalLM": {},  # its layers do not pass on what they do not know
}
PROMPTS = [(3, 9, 27, 4), (8, 4, 11), tuple(range(5, 40)), tuple(range(5, 38))]
VOCABULARY = 90


def backend_of(model: PreTrainedModel) -> EngineBackend:
    backend = EngineBackend(Scoring(device="cpu"), None, lambda: None)
    backend.engine = Engine(model, row_tokens=1024, device="cpu")
    return backend


def answers(model: PreTrainedModel, *requests: GenerationRequest) -> Answers:
    parts = backend_of(model).answers(dict(enumerate(requests)), vocabulary=VOCABULARY)
    return {key: answer for part in parts for key, answer in part.items()}


@pytest.mark.parametrize("name", CLASSES)
def test_greedy_answers_are_those_of_the_class(name: str) -> None:
    model = built(name, **CLASSES[name])
    asked = [GenerationRequest(str(prompt), prompt, 10) for prompt in PROMPTS]
    found = answers(model, *asked)
    for index, request in enumerate(asked):
        assert found[index] == plain(model, request, LENGTH_ONLY, VOCABULARY)


@pytest.mark.parametrize("name", ["MambaForCausalLM", "RobertaForCausalLM", "FalconForCausalLM"])
def test_a_class_with_a_state_of_its_own_or_without_a_mask_is_refused(name: str) -> None:
    model = built(name, **({"alibi": True} if name == "FalconForCausalLM" else {}))
    with pytest.raises(ScoringError):
        score_requests(backend_of(model).engine, [Request((1, 2), (3,))])
    with pytest.raises(ScoringError):
        answers(model, GenerationRequest("a", PROMPTS[0], 10))


def test_a_cache_that_is_wrong_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that are moved without their keys, and windows that are not heeded."""
    request = GenerationRequest("a", tuple(i % 30 for i in range(90)), 10)
    model = tiny.build("MistralForCausalLM", sliding_window=60, max_position_embeddings=256)
    assert answers(model, request)
    backend = backend_of(model)
    backend.engine.windows = {"": None}
    short = GenerationRequest("b", PROMPTS[0], 3)
    assert [*backend.answers({0: short}, vocabulary=VOCABULARY)]
    with pytest.raises(ScoringError, match="MistralForCausalLM cannot be decoded: its own"):
        backend.answers({0: request}, vocabulary=VOCABULARY)
    monkeypatch.setattr("evaluation.scoring.engine.slots.Slots.put", lambda *_: None)
    with pytest.raises(ScoringError, match="cannot be decoded"):
        answers(tiny.model("llama"), GenerationRequest("a", PROMPTS[0], 10))


@pytest.mark.parametrize("factor", [1.01, 0.5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_scale_behind_the_head_that_is_not_known_is_found(
    factor: float, dtype: torch.dtype, caplog: pytest.LogCaptureFixture
) -> None:
    """Also a scale of 1 % in bfloat16, which rounds by half as much."""
    caplog.set_level(logging.ERROR)
    model = tiny.build("LlamaForCausalLM", hidden_size=256, vocab_size=400).to(dtype)
    request = Request((1, 2, 3), (4,))
    assert score_requests(backend_of(model).engine, [request])
    forward = model.forward

    def scaled(*given: object, **named: object) -> object:
        output = forward(*given, **named)
        output.logits = output.logits * factor
        return output

    model.forward = scaled
    with pytest.raises(ScoringError, match=r"differ .* slope"):
        score_requests(backend_of(model).engine, [request])
