"""Masks: sparse ones are the dense ones, and transformers makes none of its own."""

import numpy as np
import pytest
import torch
from transformers import Qwen2Config

from evaluation.errors import ScoringError
from evaluation.scoring.engine.forward import BLOCK, Engine, layer_windows, mask_of
from evaluation.scoring.engine.packing import PackedRows, key_of
from evaluation.scoring.engine.rows import score_requests
from evaluation.scoring.window import Request
from tests.scoring import tiny
from tests.scoring.strategies import random_requests


@pytest.mark.parametrize("window", [None, 5, 280])
def test_sparse_masks_hide_what_dense_ones_hide(window):
    asked = random_requests(12, seed=3, trunk=600)
    keys = [key_of(one.context + one.continuation) for one in asked]
    rows = PackedRows([(key, key[-4:]) for key in keys], lambda shared: np.maximum(500, shared))
    batch = rows.batch([0, 1], 8 * BLOCK)
    depth, end = map(torch.from_numpy, (batch.depth, batch.end))
    dense, sparse = (mask_of(depth, end, window, compiler) for compiler in (None, "aot_eager"))
    at = (torch.arange(2)[:, None, None], 0, torch.arange(8 * BLOCK)[:, None])
    assert torch.equal(sparse.mask_mod(*at, torch.arange(8 * BLOCK)), dense[:, 0])
    cells = dense.view(2, 8, BLOCK, 8, BLOCK).any(4).any(2)
    assert torch.equal(sparse.to_dense()[:, 0].bool(), cells)
    assert not cells.equal(cells.new_ones(8, 8).tril().expand(2, -1, -1))


def test_transformers_makes_no_masks_and_looks_for_no_packed_sequences(monkeypatch):
    def made(*_, **__):
        raise AssertionError("a mask by transformers")

    scored = Engine(tiny.model("qwen2-sliding"), row_tokens=64, device="cpu")
    asked = random_requests(3, seed=1)
    score_requests(scored, asked)  # compares with transformers' own
    for name in ("find_packed_sequence_indices", "sdpa_mask", "flex_attention_mask"):
        monkeypatch.setattr(f"transformers.masking_utils.{name}", made)
    score_requests(scored, asked)
    score_requests(scored, [Request((1, 2, 3, 4, 5, 6), (4,))])  # plain, beyond the window
    assert scored.model.config._attn_implementation == "sdpa"


def test_layers_other_than_attention_are_refused():
    config = Qwen2Config(num_hidden_layers=2)
    config.layer_types = ["full_attention", "linear_attention"]
    with pytest.raises(ScoringError, match="layers of type linear_attention"):
        layer_windows(config)
    config = Qwen2Config(rope_parameters={"rope_type": "dynamic", "factor": 2.0})
    with pytest.raises(ScoringError, match="depends on the longest row"):
        layer_windows(config)
