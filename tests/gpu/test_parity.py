"""Scores beside float64: tries, windows, documents, the head."""

import numpy as np
import pytest
import torch
from transformers import PreTrainedModel

from evaluation.scoring.engine.rows import score_requests
from evaluation.scoring.window import Request
from tests.gpu.models import (
    DTYPES,
    HINTS,
    MODELS,
    VOCABULARY,
    engine_of,
    ids,
    in_float64,
    new_model,
    questions,
    relative_error,
)
from tests.scoring.tiny import plain_logprobs, plain_score, text_nats

pytestmark = [pytest.mark.gpu, *map(pytest.mark.filterwarnings, HINTS)]


def allowed(dtype: torch.dtype) -> float:
    return DTYPES[str(dtype).removeprefix("torch.")]


@pytest.mark.parametrize("name", MODELS)
def test_tries_and_windows(
    name: str, device: str, dtype: torch.dtype, random: np.random.Generator
) -> None:
    model = new_model(name, dtype, device)
    wide = in_float64(model)
    asked = questions(random)
    expected = [plain_score(wide, one) for one in asked]
    counts = [len(r.continuation) for r in asked]
    for row_tokens in (256, 512, 2048):
        found = [score.logprob for score in score_requests(engine_of(model, row_tokens), asked)]
        assert relative_error(found, expected, counts) < allowed(dtype)
    # What is allowed tells a wrong mask: another last token of the context makes more.
    changed = [Request((*r.context[:-1], r.context[-1] ^ 1), r.continuation) for r in asked]
    assert relative_error([plain_score(wide, one) for one in changed], expected, counts) > 2e-2


def nats_of(wide: PreTrainedModel, sequences: list[list[int]]) -> float:
    return -sum(float(plain_logprobs(wide, tuple(one)).sum()) for one in sequences if one[1:])


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("attention", ["block", "document"])
def test_text(
    name: str, attention: str, device: str, dtype: torch.dtype, random: np.random.Generator
) -> None:
    model = new_model(name, dtype, device)
    wide = in_float64(model)
    blocks, length = 3, 200
    tokens = torch.tensor([ids(random, length) for _ in range(blocks)])
    starts = np.unique([random.integers(50, 150), *random.integers(1, blocks * length, 6)])
    given = torch.from_numpy(starts) if attention == "document" else None
    nats, counts = text_nats(engine_of(model), tokens, given)
    expected, others, scored = [], [], []
    for block, row in enumerate(tokens.tolist()):
        inside = [int(s) - block * length for s in starts if 0 < s - block * length < length]
        parts = [row[a:b] for a, b in zip([0, *inside], [*inside, length], strict=True)]
        right, other = ([row], [row[::-1]]) if given is None else (parts, [row])
        expected.append(nats_of(wide, right))
        others.append(nats_of(wide, other))
        scored.append(sum(len(part) - 1 for part in right))
    assert counts.tolist() == scored
    assert relative_error(nats, expected, counts) < allowed(dtype)
    assert relative_error(others, expected, counts) > 2e-2  # order and documents do matter


def test_the_head(device: str, dtype: torch.dtype, random: np.random.Generator) -> None:
    """Queries with no pair, one and several, of large and small logits; ties go to the lowest id."""
    model = new_model("llama", dtype, device)
    head = engine_of(model).head
    hidden = torch.randn(900, 128, device=device, dtype=dtype) * 3
    query = torch.from_numpy(np.sort(random.integers(0, 900, 700)))
    token = torch.from_numpy(random.integers(0, VOCABULARY, 700))
    with torch.inference_mode():
        logprob, is_greedy = head.score(hidden, query.numpy(), token.numpy())
        logits = hidden.cpu().double() @ model.lm_head.weight.cpu().double().T
        tied = head.score(torch.zeros_like(hidden[:3]), np.arange(3), np.array([0, 1, 0]))
    expected = logits.log_softmax(-1)[query, token]
    assert relative_error(logprob.double().cpu(), expected) < allowed(dtype) / 10
    margin = logits.topk(2).values.diff().abs()[query, 0] > 1e-2
    greedy = (logits.argmax(-1)[query] == token)[margin]
    assert torch.equal(is_greedy.cpu()[margin], greedy)
    assert tied[1].tolist() == [True, False, True]
