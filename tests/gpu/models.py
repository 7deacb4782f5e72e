"""Small models in shapes that a GPU's kernels take, requests for them, and float64 beside them."""

import copy
import math
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel

from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.engine.gpu import INDUCTOR
from evaluation.scoring.window import Request
from tests.scoring.tiny import build

DTYPES = {"float32": 1e-3, "bfloat16": 1e-2}
"""Relative L2 error of log-probabilities that is allowed beside float64."""

HINTS = (
    "ignore:TensorFloat32 tensor cores:UserWarning",
    "ignore:Synchronization debug mode is a prototype:UserWarning",
    "ignore:.torch.jit:DeprecationWarning",
)
"""PyTorch's warnings while it compiles and while it watches for waiting; they are no faults here."""

VOCABULARY = 700
ROW_TOKENS = 512
WINDOW = 150
"""Tokens: more than a block of attention, fewer than the longest requests."""

_SHAPE = {
    "vocab_size": VOCABULARY,
    "hidden_size": 128,
    "intermediate_size": 192,
    "num_hidden_layers": 4,
    "max_position_embeddings": 2048,
    **dict.fromkeys(("bos_token_id", "eos_token_id")),
}
_WINDOWS = {"use_sliding_window": True, "sliding_window": WINDOW}
MODELS = {
    "llama": ("LlamaForCausalLM", {"tie_word_embeddings": True}),
    "qwen2-sliding": ("Qwen2ForCausalLM", {**_WINDOWS, "max_window_layers": 2}),
    "smollm3-sliding": ("SmolLM3ForCausalLM", {**_WINDOWS, "no_rope_layers": [1, 1, 0, 1]}),
}


def new_model(name: str, dtype: torch.dtype, device: str) -> PreTrainedModel:
    """Of fresh random weights, spread so that every layer matters."""
    class_name, keys = MODELS[name]
    model = build(class_name, **_SHAPE | keys)
    for parameter in model.parameters():
        if parameter.ndim == 2:
            parameter.normal_(std=1 / math.sqrt(parameter.shape[1]))
        else:
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model.to(device=device, dtype=dtype).eval()


def engine_of(model: PreTrainedModel, row_tokens: int = ROW_TOKENS) -> Engine:
    device = model.device.type
    return Engine(model, row_tokens=row_tokens, device=device, compiler=INDUCTOR.get(device))


def in_float64(model: PreTrainedModel) -> PreTrainedModel:
    """The same weights on CPU."""
    return copy.deepcopy(model).to(device="cpu", dtype=torch.float64)


def relative_error(found: Any, expected: Any, counts: Any = 1) -> float:
    """||found - expected|| / ||expected|| of a token, where sums over `counts` tokens are given.

    Errors of tokens are taken to be independent, so that a sum's is weighed by the square root of
    its length: a mask that is wrong for a few tokens must not drown in the sum of the others.
    """
    ours, theirs = np.asarray(found, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    weights = np.sqrt(np.asarray(counts, dtype=np.float64))
    return float(np.linalg.norm(ours - theirs) / np.linalg.norm(theirs / weights))


def ids(random: np.random.Generator, count: int) -> list[int]:
    return [int(one) for one in random.integers(0, VOCABULARY, count)]


def questions(random: np.random.Generator) -> list[Request]:
    """A tree of prefixes: some longer than blocks of attention and the window, some of one token."""
    shots = ids(random, int(random.integers(130, 200)))
    requests = []
    for _ in range(4):
        context = [*shots, *ids(random, int(random.integers(1, 60)))]
        for _ in range(3):
            end = ids(random, int(random.integers(1, 9)))
            requests.append(Request(tuple(context), tuple(end)))
    alone = [Request(tuple(ids(random, n)), tuple(ids(random, 2))) for n in (1, 7, 127, 128, 129)]
    requests += alone
    return [requests[place] for place in random.permutation(len(requests))]
