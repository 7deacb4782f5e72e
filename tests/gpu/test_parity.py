"""Scores beside float64: tries, windows, documents, the head."""

import numpy as np
import pytest
import torch

from evaluation.scoring.engine.loglikelihood import score_blocks, score_requests
from evaluation.scoring.engine.window import Request
from tests.gpu.models import (
    DTYPES,
    MODELS,
    VOCABULARY,
    engine_of,
    expected_scores,
    ids,
    in_float64,
    new_model,
    questions,
    relative_error,
    token_logprobs,
)

pytestmark = pytest.mark.gpu


def allowed(dtype: torch.dtype) -> float:
    return DTYPES[str(dtype).removeprefix("torch.")]


@pytest.mark.parametrize("name", MODELS)
def test_tries_and_windows(
    name: str, device: str, dtype: torch.dtype, random: np.random.Generator
) -> None:
    model = new_model(name, dtype, device)
    wide = in_float64(model)
    asked = questions(random)
    found = [score.logprob for score in score_requests(engine_of(model), asked)]
    expected = expected_scores(wide, asked)
    counts = [len(r.continuation) for r in asked]
    assert relative_error(found, expected, counts) < allowed(dtype)
    # What is allowed tells a wrong mask: another last token of the context makes more.
    changed = [Request((*r.context[:-1], r.context[-1] ^ 1), r.continuation) for r in asked]
    assert relative_error(expected_scores(wide, changed), expected, counts) > 2e-2


@pytest.mark.parametrize("name", MODELS)
def test_plain_blocks(
    name: str, device: str, dtype: torch.dtype, random: np.random.Generator
) -> None:
    model = new_model(name, dtype, device)
    wide = in_float64(model)
    tokens = torch.tensor([ids(random, 200) for _ in range(3)])
    nats, counts, *_ = score_blocks(engine_of(model), tokens)
    expected = [-float(token_logprobs(wide, row).sum()) for row in tokens.tolist()]
    assert counts.tolist() == [199] * 3
    assert relative_error(nats, expected, counts) < allowed(dtype)
    turned = [-float(token_logprobs(wide, row[::-1]).sum()) for row in tokens.tolist()]
    assert relative_error(turned, expected, counts) > 2e-2


@pytest.mark.parametrize("name", MODELS)
def test_documents_in_blocks(
    name: str, device: str, dtype: torch.dtype, random: np.random.Generator
) -> None:
    model = new_model(name, dtype, device)
    wide = in_float64(model)
    blocks, length = 3, 200
    tokens = torch.tensor([ids(random, length) for _ in range(blocks)])
    starts = np.unique([random.integers(50, 150), *random.integers(1, blocks * length, 6)])
    nats, counts, *_ = score_blocks(engine_of(model), tokens, torch.from_numpy(starts))
    expected, scored = [], []
    for block, row in enumerate(tokens.tolist()):
        inside = [int(s) - block * length for s in starts if 0 < s - block * length < length]
        parts = [row[a:b] for a, b in zip([0, *inside], [*inside, length], strict=True)]
        expected.append(-sum(float(token_logprobs(wide, part).sum()) for part in parts if part[1:]))
        scored.append(sum(len(part) - 1 for part in parts))
    assert counts.tolist() == scored
    assert relative_error(nats, expected, counts) < allowed(dtype)
    as_one = [-float(token_logprobs(wide, row).sum()) for row in tokens.tolist()]
    assert relative_error(as_one, expected, counts) > 2e-2  # documents do matter


def test_the_head(device: str, dtype: torch.dtype, random: np.random.Generator) -> None:
    """Queries with no pair, one and several, of large and small logits; ties go to the lowest id."""
    model = new_model("llama", dtype, device)
    head = engine_of(model).head
    hidden = torch.randn(900, 128, device=device, dtype=dtype) * 3
    query = torch.from_numpy(np.sort(random.integers(0, 900, 700)))
    token = torch.from_numpy(random.integers(0, VOCABULARY, 700))
    with torch.inference_mode():
        scored = head.score(hidden, query, token)
        logits = hidden.cpu().double() @ model.lm_head.weight.cpu().double().T
        tied = head.score(torch.zeros_like(hidden[:3]), torch.arange(3), torch.tensor([0, 1, 0]))
    expected = logits.log_softmax(-1)[query, token]
    assert relative_error(scored.logprob.double().cpu(), expected) < allowed(dtype) / 10
    margin = logits.topk(2).values.diff().abs()[query, 0] > 1e-2
    greedy = (logits.argmax(-1)[query] == token)[margin]
    assert torch.equal(scored.is_greedy.cpu()[margin], greedy)
    assert tied.is_greedy.tolist() == [True, False, True]


def test_scores_do_not_depend_on_the_row_budget(
    device: str, dtype: torch.dtype, random: np.random.Generator
) -> None:
    """Beyond the noise of the dtype."""
    model = new_model("llama", dtype, device)
    asked = questions(random)
    few, many = (
        [score.logprob for score in score_requests(engine_of(model, rows), asked)]
        for rows in (256, 2048)
    )
    counts = [len(r.continuation) for r in asked]
    assert relative_error(few, many, counts) < allowed(dtype)
