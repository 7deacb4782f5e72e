"""Tiny random models of every class that is scored, and the plain way to score with them."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import torch
import transformers
from transformers import PreTrainedModel

from evaluation.scoring.answers import Answer, GenerationRequest, Stopping
from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.engine.generate import generate
from evaluation.scoring.engine.rows import score_blocks, score_requests
from evaluation.scoring.window import Request

VOCABULARY = 40
LETTERS = "!abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
SHAPE = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "initializer_range": 0.4,
    "pad_token_id": None,
}
WINDOW = {"use_sliding_window": True, "sliding_window": 4}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2}
MODELS = {
    "llama": ("LlamaForCausalLM", {"tie_word_embeddings": True}),
    "qwen2": ("Qwen2ForCausalLM", {}),
    "qwen2-sliding": ("Qwen2ForCausalLM", {**WINDOW, "max_window_layers": 1}),
    "qwen2-all-sliding": ("Qwen2ForCausalLM", {**WINDOW, "max_window_layers": 0}),
    "qwen2-moe": ("Qwen2MoeForCausalLM", {**EXPERTS, "moe_intermediate_size": 24,
        "shared_expert_intermediate_size": 24}),
    "smollm3-nope": ("SmolLM3ForCausalLM", {"no_rope_layers": [1, 0, 1], "use_sliding_window": False}),
    "smollm3-sliding": ("SmolLM3ForCausalLM", {**WINDOW, "no_rope_layers": [1, 0, 1]}),
}  # fmt: skip


def build(class_name: str, **keys: object) -> PreTrainedModel:
    """A model of random weights, tiny but for the keys of its configuration that are given."""
    torch.manual_seed(0)  # whatever ran before
    model_class = getattr(transformers, class_name)
    return model_class(model_class.config_class(**SHAPE | keys)).eval().requires_grad_(False)


def built(name: str, **others: object) -> PreTrainedModel:
    """A tiny random model of any class, of which norms and biases differ from 1 and 0."""
    model_class = getattr(transformers, name)
    config_class = model_class.config_class
    known = {*config_class().to_dict(), *getattr(config_class, "attribute_map", {})}
    sizes = {**SHAPE, "vocab_size": 96, "max_position_embeddings": 256, "is_decoder": True}
    sizes |= {"head_dim": 8, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    sizes |= {"mamba_d_ssm": 64, "mamba_n_heads": 4, "mamba_d_head": 16, "state_size": 16}
    sizes |= {"rotary_dim": 8, "layer_types": None}
    torch.manual_seed(0)
    config = config_class(**{key: sizes[key] for key in sizes if key in known} | others)
    made: PreTrainedModel = model_class(config).eval().requires_grad_(False).float()
    for parameter in made.parameters():
        if parameter.ndim == 1:
            parameter.add_(0.1 * torch.randn_like(parameter))
    return made


@cache
def model(name: str) -> PreTrainedModel:
    class_name, keys = MODELS[name]
    built = build(class_name, **keys)
    for parameter in built.parameters():
        if parameter.ndim == 1:  # biases and norms, which start as constants
            parameter.add_(0.2 * torch.randn_like(parameter))
    return built


def decode(tokens: list[int]) -> str:
    return "".join(LETTERS[token] for token in tokens)


def decode_after(prompt: Sequence[int], tokens: Sequence[int]) -> str:
    """The same behind a prompt."""
    return decode(list(tokens))


@cache
def engine(name: str = "llama", row_tokens: int = 64) -> Engine:
    return Engine(model(name), row_tokens=row_tokens, device="cpu")


@torch.inference_mode()
def plain_logprobs(scored: PreTrainedModel, tokens: tuple[int, ...]) -> torch.Tensor:
    """Log-probability of tokens 1.. after all before them, by the model's own forward pass."""
    logits = scored(input_ids=torch.tensor([tokens]), use_cache=False).logits[0].double()
    return logits.log_softmax(-1)[:-1].gather(1, torch.tensor(tokens)[1:, None])[:, 0]


FREE = Stopping(frozenset(), (), decode_after)
"""An answer ends by its length alone."""


def answers(
    asked: PreTrainedModel,
    requests: list[GenerationRequest],
    stopping: Stopping = FREE,
    *,
    batch: int | None,
    vocabulary: int = VOCABULARY,
) -> list[Answer]:
    """All parts in one, in the order of the requests; no answer is given twice."""
    found: dict[int, Answer] = {}
    given = {index: replace(one, stopping=stopping) for index, one in enumerate(requests)}
    scored = Engine(asked, row_tokens=64, device="cpu")
    for part in generate(scored, given, vocabulary=vocabulary, batch=batch):
        assert part
        assert not found.keys() & part.keys()
        found |= part
    assert len(found) == len(requests)
    return [found[index] for index in range(len(requests))]


def logprobs(scored: Engine, asked: list[Request]) -> np.ndarray:
    return np.array([score.logprob for score in score_requests(scored, asked)])


def text_nats(
    scored: Engine, tokens: torch.Tensor, starts: torch.Tensor | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Nats and tokens of each block."""
    nats, counts = score_blocks(scored, tokens, starts)
    return nats.sum(axis=1), counts.sum(axis=1)


def plain_score(scored: PreTrainedModel, request: Request) -> float:
    logprobs = plain_logprobs(scored, request.context + request.continuation)
    return float(logprobs[-len(request.continuation) :].sum())
