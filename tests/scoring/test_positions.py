"""Nats by position against a plain forward pass in float64, one sequence at a time."""

import copy
import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from evaluation.metrics.perplexity import summarize_blocks
from evaluation.metrics.positions import bin_starts, summarize_positions
from evaluation.prefill.caches import SliceCache
from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.perplexity import score_slice
from tests.scoring import tiny

BLOCKS, LENGTH = 5, 700
STARTS = (0, 4, 640, 700, 1900, 2200, 2201, 2800)
"""Where documents begin: some span blocks, some are short, one is a single token."""


@pytest.fixture(scope="module")
def model() -> LlamaForCausalLM:
    torch.manual_seed(0)
    config = LlamaConfig(**{**tiny.SHAPE, "max_position_embeddings": LENGTH})
    return LlamaForCausalLM(config).eval()


def cache_of() -> SliceCache:
    draw = torch.Generator().manual_seed(1)
    tokens = torch.randint(0, tiny.VOCABULARY, (BLOCKS, LENGTH), generator=draw)
    return SliceCache(
        tokens=tokens.to(torch.uint8),
        block_bytes=torch.full((BLOCKS,), 4 * LENGTH),
        document_starts=torch.tensor(STARTS),
        start_bytes=torch.full((len(STARTS),), 4),
        meta={},
    )


def sequences(block: int, attention: str) -> list[tuple[int, int]]:
    """Where the sequences of a block begin and end that the model reads by themselves."""
    begins = {0, LENGTH}
    if attention == "document":
        begins |= {at - block * LENGTH for at in STARTS if 0 <= at - block * LENGTH < LENGTH}
    return list(itertools.pairwise(sorted(begins)))


def plain(
    model: LlamaForCausalLM, tokens: torch.Tensor, attention: str, edges: Sequence[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Nats and tokens of each block and bin, each token added where its own position falls."""
    exact = copy.deepcopy(model).double()
    nats, counts = np.zeros((BLOCKS, len(edges))), np.zeros((BLOCKS, len(edges)), dtype=int)
    for block in range(BLOCKS):
        for begin, end in sequences(block, attention):
            row = tuple(tokens[block, begin:end].tolist())
            for position, logprob in enumerate(tiny.plain_logprobs(exact, row).tolist(), start=1):
                number = max(i for i, edge in enumerate(edges) if edge <= position)
                nats[block, number] -= logprob
                counts[block, number] += 1
    return nats, counts


@pytest.mark.parametrize("attention", ["block", "document"])
@pytest.mark.parametrize("row_tokens", [700, 2200])
def test_bins_are_those_of_a_plain_computation(
    model: LlamaForCausalLM, attention: str, row_tokens: int
) -> None:
    cache = cache_of()
    engine = Engine(model, row_tokens=row_tokens, device="cpu")
    table = score_slice(tiny.Backend(engine), cache, attention).table
    nats, counts = plain(model, cache.tokens, attention, (0, 256, 512))
    assert bin_starts(LENGTH) == [0, 256, 512]
    assert table["tokens_by_position"].to_pylist() == counts.tolist()
    found = np.array(table["nats_by_position"].to_pylist())
    np.testing.assert_allclose(found, nats, rtol=1e-5, atol=1e-4)
    if attention == "document":
        assert (counts == 0).any()
    bins, whole = summarize_positions(table, LENGTH), summarize_blocks(table)
    assert [one["tokens"] for one in bins] == counts.sum(axis=0).tolist()
    sums = math.fsum(one["tokens"] * one["nats_per_token"] for one in bins)
    assert sums / whole["tokens"] == pytest.approx(whole["nats_per_token"], rel=1e-13)


def test_positions_of_documents_are_their_own(model: LlamaForCausalLM) -> None:
    """In a block of documents, none longer than 256 tokens, there is nothing far away."""
    starts = torch.arange(0, BLOCKS * LENGTH, 200)
    sizes = torch.full_like(starts, 4)
    cache = replace(cache_of(), document_starts=starts, start_bytes=sizes)
    backend = tiny.Backend(Engine(model, row_tokens=LENGTH, device="cpu"))
    kept_apart = score_slice(backend, cache, "document").table
    assert summarize_positions(kept_apart, LENGTH) == []
    assert len(summarize_positions(score_slice(backend, cache, "block").table, LENGTH)) == 3
