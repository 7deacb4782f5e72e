import math
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from evaluation.errors import NonFiniteError, ScoringError
from evaluation.metrics.perplexity import summarize_blocks
from evaluation.prefill.caches import SliceCache
from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.engine.loglikelihood import score_blocks
from evaluation.scoring.perplexity import SCHEMA, score_slice
from tests.scoring import tiny


def table_of(nats: list[float], tokens: list[int], text: list[int]) -> pa.Table:
    by_position = [[one] for one in nats], [[one] for one in tokens]
    columns = [list(range(len(nats))), nats, tokens, text, *by_position]
    return pa.table([pa.array(column) for column in columns], names=SCHEMA.names).cast(SCHEMA)


def test_summary_by_hand():
    """12 bits over 3 bytes in one block, 4 bits over 5 in the other: 16 bits over 8 bytes."""
    summary = summarize_blocks(
        table_of([12 * math.log(2), 4 * math.log(2)], tokens=[3, 1], text=[3, 5])
    )
    assert summary["bits_per_byte"] == pytest.approx(2)
    assert summary["nats_per_token"] == pytest.approx(4 * math.log(2))
    assert summary["ppl"] == pytest.approx(16)
    assert (summary["tokens"], summary["blocks"], summary["bytes"]) == (4, 2, 8)


@pytest.mark.parametrize(
    ("nats", "tokens", "error", "message"),
    [
        ([1.0, math.nan], [1, 1], NonFiniteError, "block 1: its loss is NaN"),
        ([9000.0, 9000.0], [1, 1], NonFiniteError, "no finite perplexity"),
        ([0.0, 0.0], [0, 0], ScoringError, "no token of the slice"),
    ],
)
def test_what_has_no_perplexity_is_named(nats, tokens, error, message):
    with pytest.raises(error, match=message):
        summarize_blocks(table_of(nats, tokens, text=[1, 1]))


def cache_of(blocks: int = 4, length: int = 16) -> SliceCache:
    tokens = torch.randint(
        0, tiny.VOCABULARY, (blocks, length), generator=torch.Generator().manual_seed(0)
    )
    return SliceCache(
        tokens=tokens.to(torch.uint8),
        block_bytes=torch.full((blocks,), 50),
        document_starts=torch.tensor([0, 7, 30]),
        start_bytes=torch.tensor([3, 5, 2]),
        meta={},
    )


def test_document_attention_scores_fewer_tokens():
    block = score_slice(tiny.Backend(tiny.engine()), cache_of(), "block")
    document = score_slice(tiny.Backend(tiny.engine()), cache_of(), "document")
    assert block.table.schema == SCHEMA
    assert block.table["tokens"].to_pylist() == [15] * 4
    assert block.table["bytes"].to_pylist() == [50] * 4
    assert document.table["tokens"].to_pylist() == [14, 14, 15, 15]
    assert document.table["bytes"].to_pylist() == [45, 48, 50, 50]


class Recorder(Engine):
    """Keeps the log-probability of every token of every block."""

    def launch(self, batch):
        pending = super().launch(batch)
        scores = pending.scores()
        parts = np.split(scores.logprob, np.cumsum(batch.counts)[:-1])
        self.tokens |= dict(zip(batch.owners.tolist(), parts, strict=True))
        return pending

    tokens: ClassVar[dict[int, np.ndarray]] = {}


def test_every_tokens_loss_is_that_of_the_reference(smollm2, shared):
    reference = load_file(shared / "reference/perplexity_smollm2_135m_instruct.safetensors")
    model = AutoModelForCausalLM.from_pretrained(smollm2, dtype=torch.float32).eval()
    scored = Recorder(model, row_tokens=1024, device="cpu")
    document = reference["document"]
    new = torch.ones_like(document, dtype=torch.bool)
    new[:, 1:] = document[:, 1:] != document[:, :-1]
    starts = new.flatten().nonzero()[:, 0]
    for begins, nll in ((None, reference["nll"]), (starts, reference["nll_document_masked"])):
        nats, count, *_ = score_blocks(scored, reference["input_ids"], begins)
        assert len(nats) == len(nll) == 8
        for block, expected in enumerate(nll.double()):
            want = expected[~expected.isnan()].numpy()
            assert len(want) == count[block]
            np.testing.assert_allclose(-scored.tokens[block], want, rtol=0, atol=1e-4)
            assert nats[block] == pytest.approx(want.sum(), abs=1e-4 * len(want) ** 0.5)
