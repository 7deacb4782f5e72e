"""`verify --against nanotron` with Nanotron's own, unmodified code, on the CPU in float32.

EVAL_NANOTRON is a list of folders, as in PYTHONPATH: `src` of Nanotron's repository, and those with the
packages that it needs and this environment lacks (dacite, einops, torchtyping). `nanotron_stand_ins` has
what needs a GPU: attention, rotary embedding and norms are written out there.
"""

import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import PreTrainedModel

from evaluation.checkpoints import verify
from evaluation.checkpoints.format import Checkpoint, open_checkpoint

NANOTRON = os.environ.get("EVAL_NANOTRON")
STAND_INS = Path(__file__).parent / "nanotron_stand_ins"
TOLERANCE = 1e-5
"""Relative L2 error: ten times what rounding in float32 causes."""
FIXTURES = (
    "llama_mup_tp1",
    "llama_tied_tp2",
    "llama_rope_interleaved_tp2",
    "qwen2_tp1",
    "qwen2_nope_tp1",
    "qwen2_rope_interp_tp1",
)


def swap_heads(model: PreTrainedModel) -> None:
    """The heads of queries in another order, as if rows were split otherwise."""
    for layer in model.model.layers:
        weight = layer.self_attn.q_proj.weight
        weight.copy_(weight.roll(model.config.hidden_size // model.config.num_attention_heads, 0))


def turn_otherwise(model: PreTrainedModel) -> None:
    """Neighbours are turned together in place of halves, or the reverse."""
    for layer in model.model.layers:
        for part in (layer.self_attn.q_proj, layer.self_attn.k_proj):
            width = model.config.hidden_size // model.config.num_attention_heads
            pairs = part.weight.view(-1, width // 2, 2, part.weight.shape[1])
            part.weight.copy_(pairs.transpose(1, 2).reshape(part.weight.shape))


@pytest.fixture
def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    if not NANOTRON:
        pytest.skip("set EVAL_NANOTRON to Nanotron's `src` folder")
    monkeypatch.setattr(verify, "NANOTRON_DTYPE", "float32")
    path = tmp_path / "python"
    found = shlex.quote(f"{STAND_INS}:{NANOTRON}")
    words = f'exec env PYTHONPATH="$PYTHONPATH":{found} {shlex.quote(sys.executable)} -O "$@"'
    path.write_text(f"#!/bin/sh\n{words}\n")
    path.chmod(0o755)
    return path


def misread(
    wrong: Callable[[PreTrainedModel], None],
    checkpoint: Checkpoint,
    logits: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> float:
    """The error of a model that is changed after it was read."""

    def load(*given: object, **told: object) -> PreTrainedModel:
        model = load_model(*given, **told)
        with torch.no_grad():
            wrong(model)
        return model

    load_model = verify.load_model
    with monkeypatch.context() as patch:
        patch.setattr(verify, "load_model", load)
        return verify.relative_error(checkpoint, logits)


@pytest.mark.parametrize("name", FIXTURES)
def test_nanotrons_own_logits(
    shared: Path, tmp_path: Path, python: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = open_checkpoint(shared / "fixtures/nanotron" / name)
    verify.write_request(checkpoint, tmp_path)
    logits = verify.run_nanotron(python, tmp_path)
    error = verify.relative_error(checkpoint, logits)
    print(name, error)
    assert error < TOLERANCE
    for change in (swap_heads, turn_otherwise):
        found = misread(change, checkpoint, logits, monkeypatch)
        print(name, change.__name__, found)
        assert found > 2 * verify.NANOTRON_TOLERANCE > 10 * TOLERANCE
