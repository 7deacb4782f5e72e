"""Masks: sparse ones are the dense ones, and transformers makes none of its own."""

import numpy as np
import pytest
import torch
from transformers import Qwen2Config

from evaluation.errors import ScoringError
from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.engine.masks import BLOCK, block_mask, dense_mask, layer_windows
from evaluation.scoring.engine.rows import score_requests
from evaluation.scoring.engine.tries import Batch, PackedInputs, collate, key_of
from evaluation.scoring.engine.window import Request
from tests.scoring import tiny
from tests.scoring.strategies import random_requests


def batch_of(asked: list[Request], budget: int, length: int) -> Batch:
    inputs = [key_of(one.context + one.continuation[:-1]) for one in asked]
    targets = [key_of(one.continuation) for one in asked]
    packed = PackedInputs(inputs, targets, lambda shared: np.maximum(budget, shared))
    return collate([packed.row(i) for i in range(len(packed.lengths))], length)


@pytest.mark.parametrize("window", [None, 5, 280])
def test_block_mask_hides_nothing_and_claims_nothing(window):
    """Blocks that are left out are empty in the dense mask; blocks taken as full are full."""
    batch = batch_of(random_requests(12, seed=3, trunk=600), 900, 8 * BLOCK)
    dense = dense_mask(batch.depth, batch.end, window)[:, 0]
    rows, length = batch.end.shape
    blocks = length // BLOCK
    cells = dense.view(rows, blocks, BLOCK, blocks, BLOCK).transpose(2, 3).flatten(3)
    sparse = block_mask(batch.depth, batch.end, window)
    listed = sparse.to_dense().bool()[:, 0]
    assert not (cells.any(-1) & ~listed).any()
    full = torch.zeros_like(listed)
    for row in range(rows):
        for q in range(blocks):
            count = sparse.full_kv_num_blocks[row, 0, q]
            full[row, q, sparse.full_kv_indices[row, 0, q, :count].long()] = True
    assert (cells.all(-1) | ~full).all()
    assert full.any() or window == 5
    index = torch.arange(length)
    inside = sparse.mask_mod(torch.tensor(0), torch.tensor(0), index[:, None], index[None, :])
    assert torch.equal(inside, dense[0])


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
