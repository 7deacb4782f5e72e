import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from torch.nn.attention.flex_attention import flex_attention
from transformers import Qwen2Config

from evaluation.errors import ScoringError
from evaluation.scoring.engine.attention import BLOCK, block_mask, dense_mask, layer_windows
from evaluation.scoring.engine.batches import Batch, collate, group_rows
from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.engine.rows import lay_out, plan_requests
from evaluation.scoring.engine.tries import pack
from evaluation.scoring.engine.window import Request
from tests.scoring import tiny
from tests.scoring.strategies import requests


def batch_of(asked: list[Request], budget: int, length: int) -> Batch:
    plan = plan_requests(asked)
    return collate([lay_out(plan, piece) for piece in pack(plan.trie, lambda _: budget)], length)


def random_requests(count: int, seed: int) -> list[Request]:
    """Long enough to cover several blocks, with shared prefixes of all lengths."""
    random = np.random.default_rng(seed)
    trunk = random.integers(0, tiny.VOCABULARY, 300)
    asked = []
    for _ in range(count):
        own = random.integers(0, tiny.VOCABULARY, random.integers(2, 40))
        cut = random.integers(1, 300) if len(asked) == 5 else random.integers(280, 300)
        tokens = tuple(map(int, np.append(trunk[:cut], own)))
        asked.append(Request(tokens[:-2], tokens[-2:]))
    return asked


@given(requests(), st.sampled_from([None, 1, 3]))
def test_dense_mask_is_ancestors_within_the_window(asked, window):
    batch = batch_of(asked, 20, 60)
    assume(not batch.is_causal)  # there padding goes on counting, unseen
    mask = dense_mask(batch.depth, batch.end, window)[:, 0]
    expected = batch.depth + 1 if window is None else (batch.depth + 1).clamp(max=window)
    assert torch.equal(mask.sum(-1), expected)
    assert mask.diagonal(dim1=1, dim2=2).all()


@pytest.mark.parametrize("window", [None, 5, 280])
def test_block_mask_hides_nothing_and_claims_nothing(window):
    """Blocks that are left out are empty in the dense mask; blocks taken as full are full."""
    batch = batch_of(random_requests(12, seed=3), 900, 8 * BLOCK)
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


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("name", ["llama", "qwen2-sliding", "smollm3-sliding"])
def test_flex_attention_gives_what_dense_masks_give(name, monkeypatch):
    """Uncompiled, as compiling takes longer than all other tests; the rule and masks are the same."""
    monkeypatch.setattr(
        "transformers.integrations.flex_attention.compile_friendly_flex_attention",
        lambda query, key, value, training=False, **options: flex_attention(
            query, key, value, **options
        ),
    )
    scored = Engine(tiny.model(name), row_tokens=64, device="cpu")
    batch = batch_of(random_requests(6, seed=4), 500, 4 * BLOCK)
    flex = scored.hidden(batch, use_flex=True)
    dense = scored.hidden(batch, use_flex=False)
    assert scored.model.config._attn_implementation == "sdpa"
    error = (flex - dense).norm() / dense.norm()
    assert 0 < error < 1e-5


def test_plain_sequences_need_no_mask():
    plain = batch_of([Request((1, 2, 3), (4,)), Request((5, 6), (7,))], 3, 5)
    assert plain.is_causal
    assert plain.depth.tolist() == [[0, 1, 2, 3, 4]] * 2
    assert not batch_of([Request((1, 2), (3, 4)), Request((1, 2), (4, 4))], 9, 5).is_causal


def test_rows_are_grouped_longest_first_within_the_budget():
    groups = list(group_rows([3, 10, 5, 4, 5], 10))
    assert groups == [[1], [2, 4], [3, 0]]
    assert list(group_rows([], 10)) == []
    assert list(group_rows([30, 20], 10)) == [[0], [1]]


def test_rows_much_shorter_than_the_first_run_later():
    assert list(group_rows([100, 90, 80, 40, 40], 1000)) == [[0, 1, 2], [3, 4]]


def test_layers_other_than_attention_are_refused():
    config = Qwen2Config(num_hidden_layers=2)
    config.layer_types = ["full_attention", "linear_attention"]
    with pytest.raises(ScoringError, match="layers of type linear_attention"):
        layer_windows(config)
