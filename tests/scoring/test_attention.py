import numpy as np
import pytest
import torch
from transformers import Qwen2Config

from evaluation.errors import ScoringError
from evaluation.scoring.engine import attend as attend_module
from evaluation.scoring.engine import masks
from evaluation.scoring.engine.attend import attend
from evaluation.scoring.engine.batches import Batch, collate
from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.engine.masks import BLOCK, block_mask, dense_mask, layer_windows
from evaluation.scoring.engine.packed_rows import packed_row, plan_requests
from evaluation.scoring.engine.tries import pack
from evaluation.scoring.engine.window import Request
from tests.scoring import tiny
from tests.scoring.strategies import random_requests


def batch_of(asked: list[Request], budget: int, length: int) -> Batch:
    plan = plan_requests(asked)
    return collate([packed_row(plan, piece) for piece in pack(plan.trie, lambda _: budget)], length)


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


@pytest.mark.parametrize("name", ["llama", "qwen2-sliding"])
def test_masks_too_large_for_memory_are_made_in_pieces(name, monkeypatch):
    asked = random_requests(4, seed=2, trunk=300)
    scored = Engine(tiny.model(name), row_tokens=64, device="cpu")
    expected = scored.score(batch_of(asked, 900, 700)).logprob
    made = []
    piece = masks.mask_piece
    monkeypatch.setattr(
        attend_module, "mask_piece", lambda *of: made.append(piece(*of).shape) or piece(*of)
    )
    for module in (masks, attend_module):
        monkeypatch.setattr(module, "MOST_PAIRS", 100 * 700)
    found = scored.score(batch_of(asked, 900, 700)).logprob
    np.testing.assert_allclose(found, expected, atol=1e-4, rtol=0)
    assert max(rows for _, _, rows, _ in made) <= 100
    assert max(columns for *_, columns in made) == 700


def test_transformers_makes_no_masks_and_looks_for_no_packed_sequences(monkeypatch):
    def made(*_, **__):
        raise AssertionError("a mask by transformers")

    scored = Engine(tiny.model("qwen2-sliding"), row_tokens=64, device="cpu")
    scored.score(batch_of(random_requests(3, seed=1), 500, 400))  # compares with transformers' own
    for name in ("find_packed_sequence_indices", "sdpa_mask", "flex_attention_mask"):
        monkeypatch.setattr(f"transformers.masking_utils.{name}", made)
    scored.score(batch_of(random_requests(3, seed=1), 500, 400))
    scored.score(batch_of([Request((1, 2, 3, 4, 5, 6), (4,))], 9, 6))  # plain, beyond the window
    assert scored.model.config._attn_implementation == "sdpa"


@pytest.mark.parametrize("asked", ["softcap", "s_aux", "position_bias"])
def test_attention_that_does_more_is_refused(asked):
    part = torch.zeros(1, 2, 3, 4)
    with pytest.raises(ScoringError, match=f"computes attention with `{asked}`"):
        attend(torch.nn.Linear(1, 1), part, part, part, None, **{asked: 3.0})


def test_layers_other_than_attention_are_refused():
    config = Qwen2Config(num_hidden_layers=2)
    config.layer_types = ["full_attention", "linear_attention"]
    with pytest.raises(ScoringError, match="layers of type linear_attention"):
        layer_windows(config)
