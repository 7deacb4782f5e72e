"""Masks: sparse ones are the dense ones, and layers without such a mask are refused."""

import copy

import numpy as np
import pytest
import torch
from transformers import Qwen2Config

from evaluation.errors import ScoringError
from evaluation.scoring.engine.forward import BLOCK, layer_windows
from evaluation.scoring.engine.packing import PackedRows, key_of
from tests.scoring import tiny
from tests.scoring.strategies import random_requests


@pytest.mark.parametrize("window", [None, 5, 280])
def test_sparse_masks_hide_what_dense_ones_hide(window):
    asked = random_requests(12, seed=3, trunk=600)
    keys = [key_of(one.context + one.continuation) for one in asked]
    rows = PackedRows([(key, key[-4:]) for key in keys], lambda shared: np.maximum(500, shared))
    batch = rows.batch([0, 1], 8 * BLOCK)
    depth, end = map(torch.from_numpy, (batch.depth, batch.end))
    compiled = copy.copy(tiny.engine())
    compiled.compiler = "aot_eager"
    dense, sparse = (engine.mask(depth, end, window) for engine in (tiny.engine(), compiled))
    at = (torch.arange(2)[:, None, None], 0, torch.arange(8 * BLOCK)[:, None])
    assert torch.equal(sparse.mask_mod(*at, torch.arange(8 * BLOCK)), dense[:, 0])
    cells = dense.view(2, 8, BLOCK, 8, BLOCK).any(4).any(2)
    assert torch.equal(sparse.to_dense()[:, 0].bool(), cells)
    assert not cells.equal(cells.new_ones(8, 8).tril().expand(2, -1, -1))


def test_layers_other_than_attention_are_refused():
    config = Qwen2Config(num_hidden_layers=2)
    config.layer_types = ["full_attention", "linear_attention"]
    with pytest.raises(ScoringError, match="of type linear_attention"):
        layer_windows(config)
    config = Qwen2Config(rope_parameters={"rope_type": "dynamic", "factor": 2.0})
    with pytest.raises(ScoringError, match="of type dynamic"):
        layer_windows(config)
