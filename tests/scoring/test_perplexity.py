"""Nats of text against plain forward passes and a reference, and what they are summarized to."""

import copy
import itertools
import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from evaluation.checkpoints.subjects import step_subject
from evaluation.flow.make import make
from evaluation.flow.targets import COLLECT, SCORE
from evaluation.metrics.positions import bin_starts
from evaluation.prefill.caches import SliceCache
from evaluation.results.read import read_results
from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.perplexity import SCHEMA, score_part
from tests.scoring import tiny
from tests.tables import EVERYTHING
from tests.workflow.world import World

BLOCKS, LENGTH = 5, 700
STARTS = (0, 4, 640, 700, 1900, 2200, 2201, 2800)
"""Where documents begin: some span blocks, some are short, one is a single token."""


def plain(
    name: str, tokens: torch.Tensor, attention: str, edges: Sequence[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Nats and tokens of each block and bin, by a plain forward pass in float64 over each sequence."""
    exact = copy.deepcopy(tiny.model(name)).double()
    nats, counts = np.zeros((BLOCKS, len(edges))), np.zeros((BLOCKS, len(edges)), dtype=int)
    for block in range(BLOCKS):
        begins = {0, LENGTH}
        if attention == "document":
            begins |= {at - block * LENGTH for at in STARTS if 0 <= at - block * LENGTH < LENGTH}
        for begin, end in itertools.pairwise(sorted(begins)):
            row = tuple(tokens[block, begin:end].tolist())
            for position, logprob in enumerate(tiny.plain_logprobs(exact, row).tolist(), start=1):
                number = max(i for i, edge in enumerate(edges) if edge <= position)
                nats[block, number] -= logprob
                counts[block, number] += 1
    return nats, counts


@pytest.mark.parametrize("attention", ["block", "document"])
@pytest.mark.parametrize(
    ("name", "row_tokens"), [("llama", 700), ("qwen2-sliding", 2200), ("smollm3-nope", 2200)]
)
def test_nats_are_those_of_a_plain_computation(name: str, row_tokens: int, attention: str) -> None:
    """In all and by position; documents are scored alone, and a block begins one anew."""
    draw = torch.Generator().manual_seed(1)
    tokens = torch.randint(0, tiny.VOCABULARY, (BLOCKS, LENGTH), generator=draw)
    cache = SliceCache(
        tokens=tokens.to(torch.uint8),
        block_bytes=torch.full((BLOCKS,), 50),
        document_starts=torch.tensor(STARTS),
        start_bytes=torch.tensor([7, 1, 2, 7, 3, 4, 5, 7]),  # the 7 are at the begin of a block
        meta={},
    )
    engine = Engine(tiny.model(name), row_tokens=row_tokens, device="cpu")
    parts = [score_part(engine, cache, attention, np.array(own)) for own in ([0, 2, 3], [1, 4])]
    table = pa.concat_tables(parts).sort_by("block")
    assert table.schema == SCHEMA
    nats, counts = plain(name, cache.tokens, attention, (0, 256, 512))
    assert bin_starts(LENGTH) == [0, 256, 512]
    assert table["tokens_by_position"].to_pylist() == counts.tolist()
    assert table["tokens"].to_pylist() == counts.sum(axis=1).tolist()
    found = np.array(table["nats_by_position"].to_pylist())
    np.testing.assert_allclose(found, nats, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(table["nats"], nats.sum(axis=1), rtol=1e-6)
    inside = [1 + 2, 0, 3, 4 + 5, 0] if attention == "document" else [0] * BLOCKS
    assert table["bytes"].to_pylist() == [50 - one for one in inside]


class Recorder(Engine):
    """Keeps the log-probability of every token, by its block or document and its position."""

    def score(self, batch):
        scores = super().score(batch)
        places = zip(batch.owner.tolist(), batch.position.tolist(), strict=True)
        self.tokens |= dict(zip(places, scores[0].tolist(), strict=True))
        return scores

    tokens: ClassVar[dict[tuple[int, int], float]] = {}


def test_every_tokens_loss_is_that_of_the_reference(smollm2, shared):
    reference = load_file(shared / "reference/perplexity_smollm2_135m_instruct.safetensors")
    model = AutoModelForCausalLM.from_pretrained(smollm2, dtype=torch.float32).eval()
    scored = Recorder(model, row_tokens=1024, device="cpu")
    blocks = 8 if EVERYTHING else 4
    document = reference["document"][:blocks]
    new = torch.ones_like(document, dtype=torch.bool)
    new[:, 1:] = document[:, 1:] != document[:, :-1]
    starts = new.flatten().nonzero()[:, 0]
    tiny.text_nats(scored, document[:1, :8])  # makes the check
    for begins, nll in ((None, reference["nll"]), (starts, reference["nll_document_masked"])):
        scored.tokens.clear()
        nats, count = tiny.text_nats(scored, reference["input_ids"][:blocks], begins)
        in_order = iter(-logprob for _, logprob in sorted(scored.tokens.items()))
        assert len(nats) == blocks
        for block, expected in enumerate(nll[:blocks].double()):
            want = expected[~expected.isnan()].numpy()
            assert len(want) == count[block]
            found = list(itertools.islice(in_order, len(want)))
            np.testing.assert_allclose(found, want, rtol=0, atol=1e-4)
            assert nats[block] == pytest.approx(want.sum(), abs=1e-4 * len(want) ** 0.5)


def test_a_loss_without_a_finite_perplexity_is_stored(world: World) -> None:
    """Nats and bits are finite, and the other tiers are scored."""
    subject = step_subject(world.plans["stage2"], 5)
    for path in (subject.checkpoint / "model/model/final_layer_norm").rglob("*.safetensors"):
        with safe_open(path, "pt") as opened:
            about = opened.metadata()
        save_file({name: 3e4 * part for name, part in load_file(path).items()}, path, about)
    assert make(SCORE, subject).error is None
    assert make(COLLECT, subject).error is None
    tiers = read_results(subject.folder, ("tier2", "tier3")).tiers
    (entry,) = (item.entry for item in tiers["tier2"].items.values())
    assert (entry.ppl, entry.nats_per_token > 709) == (None, True)
    assert math.isfinite(entry.bits_per_byte)
    assert tiers["tier3"].items
