"""A checkpoint whose layers are dealt over several devices: the same scores and answers as on one."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers import GPT2Config, GPT2LMHeadModel

from evaluation.checkpoints.format import open_checkpoint
from evaluation.checkpoints.load import device_number, load_model
from evaluation.errors import ConfigError, ScoringError
from evaluation.scoring.answers import GenerationRequest, Stopping
from evaluation.scoring.engine import attend
from evaluation.scoring.engine import backend as engine_backend
from evaluation.scoring.engine.backend import EngineBackend
from evaluation.scoring.engine.footprint import footprint
from evaluation.scoring.engine.generation.kv_cache import (
    ATTENTION,
    DecodingStep,
    PrefillCache,
    Prefix,
    Slots,
)
from evaluation.scoring.engine.layer_devices import connect_layers
from evaluation.scoring.engine.masks import block_mask, dense_mask, layer_masks, layer_windows
from evaluation.settings.computing import Scoring
from evaluation.settings.generation import Sampling
from tests.checkpoints.nanotron import llama, make_checkpoint, moe, qwen2
from tests.scoring import tiny
from tests.scoring.strategies import random_requests

SHAPE = {"num_hidden_layers": 3, "vocab_size": 60}
MODELS = [
    ("llama, tied", 2, llama(**SHAPE, tie_word_embeddings=True, rope_interleaved=True)),
    ("qwen2, biases", 3, qwen2(**SHAPE, attention_bias=True)),
    ("qwen2, experts", 2, qwen2(**SHAPE, moe_config=moe())),
]
STOPPING = Stopping(
    frozenset({5}), ("ab", "z"), lambda _, tokens: "".join(chr(97 + one % 26) for one in tokens)
)
PROMPTS = [
    GenerationRequest("greedy", (3, 9, 27), 12, stopping=STOPPING),
    GenerationRequest("another", (3, 9, 28, 30), 5, stopping=STOPPING),
    GenerationRequest(
        "drawn", (8, 4), 9, (0, 1, 2), Sampling(temperature=0.8, top_k=20, n=3), STOPPING
    ),
]


def scoring(gpus: int) -> Scoring:
    return Scoring(device="cpu", gpus_per_checkpoint=gpus, cpu_row_tokens=48)


def everything(backend: EngineBackend) -> list[Any]:
    tokens = torch.randint(0, 60, (5, 24), generator=torch.Generator().manual_seed(1))
    starts = torch.tensor([0, 30, 49, 96])
    scores = backend.log_likelihoods(random_requests(40, trunk=12), label="requests")
    nats, counts, *_ = backend.block_nats(tokens.to(torch.uint16), starts, label="blocks")
    answers = list(backend.answers(PROMPTS, vocabulary=58))
    return [scores, nats.tolist(), counts.tolist(), answers, backend.tokens_processed]


@pytest.mark.parametrize(("gpus", "config"), [m[1:] for m in MODELS], ids=[m[0] for m in MODELS])
@pytest.mark.parametrize("kind", ["nanotron", "huggingface"])
def test_scores_and_answers_are_those_of_one_device(
    gpus: int, config: dict[str, Any], kind: str, tmp_path: Path
) -> None:
    make_checkpoint(tmp_path / "7", config, tp=2)
    checkpoint = open_checkpoint(tmp_path / "7")
    if kind == "huggingface":
        load_model(checkpoint).save_pretrained(tmp_path / "hf")
        checkpoint = open_checkpoint(tmp_path / "hf")
    one, several = (EngineBackend(scoring(n), checkpoint, lambda: None) for n in (1, gpus))
    assert everything(several) == everything(one)
    assert len(several.devices) == gpus


@pytest.mark.parametrize(
    ("layers", "gpus", "expected"),
    [(4, 2, [0, 0, 1, 1]), (5, 3, [0, 0, 1, 1, 2]), (3, 3, [0, 1, 2]), (3, 1, [0, 0, 0])],
)
def test_layers_are_dealt_in_their_order(layers: int, gpus: int, expected: list[int]) -> None:
    names = [f"model.layers.{layer}.mlp.up_proj.weight" for layer in range(layers)]
    assert [device_number(name, layers, gpus) for name in names] == expected
    ends = ("model.embed_tokens.weight", "model.norm.weight", "lm_head.weight")
    assert [device_number(name, layers, gpus) for name in ends] == [0, gpus - 1, gpus - 1]


def test_the_fullest_gpu_is_the_one_with_a_head_or_an_embedding(tmp_path: Path) -> None:
    make_checkpoint(tmp_path / "7", llama(**SHAPE))
    checkpoint = open_checkpoint(tmp_path / "7")
    model = load_model(checkpoint, dtype=torch.float32)
    layer = sum(weight.nbytes for weight in model.model.layers[0].parameters())
    ends = model.lm_head.weight.nbytes + model.model.norm.weight.nbytes
    assert footprint(checkpoint, torch.float32, 3).weights == layer + ends
    assert (
        footprint(checkpoint, torch.float32, 2).weights == 2 * layer + model.lm_head.weight.nbytes
    )


def test_too_few_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_checkpoint(tmp_path / "7", llama(**SHAPE))
    monkeypatch.setattr(engine_backend, "choose_device", lambda asked, gpus: "cuda")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    backend = EngineBackend(scoring(3), open_checkpoint(tmp_path / "7"), lambda: None)
    with pytest.raises(ConfigError, match="3, but this process sees 2 GPUs; ask for as many"):
        _ = backend.model


def test_a_class_without_a_list_of_layers() -> None:
    model = GPT2LMHeadModel(
        GPT2Config(vocab_size=8, bos_token_id=0, eos_token_id=0, n_embd=4, n_layer=2, n_head=1)
    )
    with pytest.raises(ScoringError, match=r"GPT2LMHeadModel has no list .*gpus_per_checkpoint: 1"):
        connect_layers(model)


DEVICES = [torch.device("cpu", number) for number in range(3)]
"""To fake tensors three devices, from which they take nothing unasked."""
PASSES = ["plain", "dense", "sparse", "prompts", "step"]


@pytest.mark.parametrize("name", ["llama", "qwen2-sliding"])
@pytest.mark.parametrize("kind", PASSES)
def test_nothing_is_computed_across_devices(
    name: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fake tensors of one device refuse those of another, also where the devices are not there."""
    monkeypatch.setattr(attend, "flex_attention", _flex_attention)
    with FakeTensorMode(), OneDevice(), torch.inference_mode():
        class_name, keys = tiny.MODELS[name]
        model = tiny.build(class_name, **keys)
        for part, tensor in [*model.named_buffers(), *model.named_parameters()]:
            is_inside = isinstance(tensor, torch.nn.Parameter)
            tensor.fake_device = DEVICES[device_number(part, 3, 3) if is_inside else 0]
        connect_layers(model)
        named = _inputs(model, kind)
        rows, length = (2, 1) if kind == "step" else (2, 128)
        ids = torch.zeros(rows, length, dtype=torch.long, device=DEVICES[0])
        hidden = model.base_model(input_ids=ids, position_ids=ids, use_cache=False, **named)[0]
        logits = model.get_output_embeddings()(hidden)
    head = DEVICES[0] if model.config.tie_word_embeddings else DEVICES[2]
    assert (hidden.device, logits.device) == (DEVICES[2], head)


class OneDevice(TorchDispatchMode):
    """Refuses also indices of another device, which fake tensors take."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        leaves = [one for one in tree_leaves((args, kwargs)) if isinstance(one, torch.Tensor)]
        devices = {one.device for one in leaves if one.ndim}
        assert len(devices) < 2 or "copy" in str(func), (func, devices)
        return found


def _flex_attention(query: torch.Tensor, key: torch.Tensor, *_: Any, **named: Any) -> torch.Tensor:
    """Takes the rule and its tensors where the queries are."""
    places = torch.zeros(4, 1, dtype=torch.long, device=query.device)
    named["block_mask"].mask_mod(*places)
    return query + key[:, :1] + named["block_mask"].kv_num_blocks.sum()


def _inputs(model: Any, kind: str) -> dict[str, Any]:
    """What a pass of a kind takes beside ids and positions; prompts follow a prefix that they share."""
    if kind not in ("prompts", "step"):
        model.set_attn_implementation(attend.NAME)
        depth, end = torch.zeros(2, 2, 128, dtype=torch.long, device=DEVICES[0])
        maker = block_mask if kind == "sparse" else dense_mask
        windows = layer_windows(model.config)
        masks = layer_masks(depth, end, windows, maker, is_causal=kind == "plain")
        return {"attention_mask": masks}
    model.set_attn_implementation(ATTENTION)
    heads, width = model.config.num_key_value_heads, model.config.hidden_size // 4
    parts = [torch.zeros(heads, 40, width, device=device) for device in DEVICES]
    stem, windows = Prefix(parts, parts, 0), [None, 4, 4]
    if kind == "prompts":
        return {"memory": PrefillCache([stem], windows, torch.arange(128, device=DEVICES[0])[None])}
    slots = Slots(4, stem)
    return {"memory": DecodingStep(slots, 2, slots.widen(48), windows)}
