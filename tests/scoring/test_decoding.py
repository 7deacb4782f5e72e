"""Every class is decoded as it decodes itself: fast if its logits are the same, or by `generate`."""

import pytest
import torch
from transformers import PreTrainedModel

from evaluation.errors import ScoringError
from evaluation.scoring.answers import AnswerKey, GenerationRequest, Stopping
from evaluation.scoring.engine.backend import EngineBackend
from evaluation.scoring.engine.generation.check import decoding_fault
from evaluation.settings.computing import Scoring
from evaluation.settings.generation import Sampling
from tests.scoring import tiny
from tests.scoring.families import built

FAST = ("LlamaForCausalLM", "GPT2LMHeadModel", "Gemma3ForCausalLM", "AfmoeForCausalLM")
PLAIN = {
    "DiffLlamaForCausalLM": {},  # its attention subtracts a second one
    "FalconH1ForCausalLM": {},  # its mixer has a state
    "GraniteForCausalLM": {"logits_scaling": 4.0},
    "StableLmForCausalLM": {},  # its layers do not pass on what they do not know
    "MambaForCausalLM": {},
}
PROMPTS = [(3, 9, 27, 4), (8, 4, 11), tuple(range(5, 40))]
VOCABULARY = 90
STOPPING = Stopping(
    frozenset(range(7, 96, 9)), ("bb", "q"), lambda _, ids: "".join(chr(97 + i % 26) for i in ids)
)


def backend_of(model: PreTrainedModel) -> EngineBackend:
    backend = EngineBackend(Scoring(device="cpu"), None, lambda: None)
    backend.model = model
    return backend


def answers(model: PreTrainedModel, *requests: GenerationRequest) -> dict[AnswerKey, object]:
    parts = backend_of(model).answers(requests, vocabulary=VOCABULARY)
    return {key: answer for part in parts for key, answer in part.items()}


@torch.inference_mode()
def greedy(model: PreTrainedModel, tokens: tuple[int, ...], count: int) -> list[int]:
    """By whole forward passes, without any cache."""
    found = list(tokens)
    for _ in range(count):
        logits = model(input_ids=torch.tensor([found]), use_cache=False).logits[0, -1]
        found.append(int(logits[:VOCABULARY].argmax()))
    return found[len(tokens) :]


@pytest.mark.parametrize("name", [*FAST, *PLAIN])
def test_greedy_answers_are_those_of_the_class(name: str, caplog: pytest.LogCaptureFixture) -> None:
    model = built(name, **PLAIN.get(name, {}))
    found = answers(model, *(GenerationRequest(str(p), p, 10) for p in PROMPTS))
    for index, prompt in enumerate(PROMPTS):
        assert list(found[AnswerKey(index, 0)].tokens) == greedy(model, prompt, 10)
    warned = [one for one in caplog.messages if "cannot be decoded fast" in one]
    assert len(warned) == (name in PLAIN)


def test_a_class_whose_cache_differs_from_its_forward_pass_is_refused() -> None:
    """RoBERTa counts positions otherwise with a cache."""
    with pytest.raises(ScoringError, match="RobertaForCausalLM cannot be decoded: the logits with"):
        answers(built("RobertaForCausalLM"), GenerationRequest("a", PROMPTS[0], 10))


def test_the_plain_way_gives_the_same_samples_as_the_fast_one() -> None:
    """With stop strings, an end token, and several samples of a prompt."""
    torch.manual_seed(0)
    model = tiny.build("LlamaForCausalLM", vocab_size=96)
    assert decoding_fault(model, "cpu") is None
    sampling = Sampling(temperature=1.5, top_k=30, top_p=0.95, seed=4, n=5)
    requests = [
        GenerationRequest(str(p), p, 12, (0, 1, 2, 4), sampling, STOPPING) for p in PROMPTS
    ] + [GenerationRequest(str(p), p, 12, stopping=STOPPING) for p in PROMPTS]
    fast, backend = answers(model, *requests), backend_of(model)
    backend._decodes = lambda longest: False
    parts = backend.answers(requests, vocabulary=VOCABULARY)
    assert {key: answer for part in parts for key, answer in part.items()} == fast
    assert {answer.stop_reason for answer in fast.values()} == {"eos", "stop_string", "length"}


def test_a_window_is_compared_before_it_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny.build("MistralForCausalLM", sliding_window=48, max_position_embeddings=256)
    monkeypatch.setattr(
        "evaluation.scoring.engine.generation.generate.windows_by_layer",
        lambda config: [None] * config.num_hidden_layers,
    )
    backend = backend_of(model)
    assert backend._decodes(40)
    assert not backend._decodes(100)
