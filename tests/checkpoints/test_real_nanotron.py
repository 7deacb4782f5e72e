"""`verify --against nanotron` with Nanotron's own, unmodified code, on the CPU in float32.

EVAL_NANOTRON is a list of folders, as in PYTHONPATH: `src` of Nanotron's repository, and those with the
packages that it needs and this environment lacks (dacite, einops, torchtyping). `nanotron_stand_ins` has
what needs a GPU: attention, rotary embedding and norms are written out there.
"""

import os
import shlex
import sys
from pathlib import Path

import pytest
from transformers import PreTrainedModel

from evaluation.checkpoints import verify
from evaluation.checkpoints.format import open_checkpoint

NANOTRON = os.environ.get("EVAL_NANOTRON")
STAND_INS = Path(__file__).parent / "nanotron_stand_ins"
TOLERANCE = 1e-5
"""Relative L2 error: ten times what rounding in float32 causes."""
FIXTURES = (
    "llama_tied_tp2",
    "llama_rope_interleaved_tp2",
    "qwen2_tp1",
    "qwen2_nope_tp1",
    "qwen2_rope_interp_tp1",
)


def turn_otherwise(model: PreTrainedModel) -> PreTrainedModel:
    """Neighbours are turned together in place of halves, or the reverse, as if it was misread."""
    for layer in model.model.layers:
        for part in (layer.self_attn.q_proj, layer.self_attn.k_proj):
            width = model.config.hidden_size // model.config.num_attention_heads
            pairs = part.weight.view(-1, width // 2, 2, part.weight.shape[1])
            part.weight.copy_(pairs.transpose(1, 2).reshape(part.weight.shape))
    return model


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
    load = verify.load_model
    monkeypatch.setattr(verify, "load_model", lambda *a, **b: turn_otherwise(load(*a, **b)))
    misread = verify.relative_error(checkpoint, logits)
    assert misread > 2 * verify.NANOTRON_TOLERANCE > 10 * TOLERANCE
