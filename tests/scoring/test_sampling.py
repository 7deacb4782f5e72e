"""Drawn tokens against exact probabilities, and samples that depend on nothing beside them."""

from collections import Counter
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare
from transformers.generation.logits_process import (
    LogitsProcessorList,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from evaluation.scoring.answers import GenerationRequest, Stopping
from evaluation.scoring.engine.sampling import choose, draw, filtered, stream_of
from evaluation.settings.generation import Sampling
from tests.scoring import tiny
from tests.scoring.test_generation import asks
from tests.scoring.tiny import decode_after

SETTINGS = [
    Sampling(temperature=1.0),
    Sampling(temperature=0.2),
    Sampling(temperature=1.3, top_k=5),
    Sampling(temperature=0.8, top_p=0.6),
    Sampling(temperature=0.6, top_k=20, top_p=0.95),
    Sampling(temperature=1.0, top_k=1),
    Sampling(temperature=1.0, top_p=0.01),
    Sampling(temperature=1.0, top_k=1000),
]


def by_transformers(logits: torch.Tensor, one: Sampling) -> torch.Tensor:
    warpers = LogitsProcessorList([TemperatureLogitsWarper(one.temperature)])
    if one.top_k:
        warpers.append(TopKLogitsWarper(one.top_k))
    if one.top_p < 1:
        warpers.append(TopPLogitsWarper(one.top_p))
    return warpers(torch.zeros(len(logits), 1, dtype=torch.long), logits).softmax(dim=-1)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_filters_are_those_of_transformers(settings: Sampling) -> None:
    torch.manual_seed(1)
    logits = 3 * torch.randn(20, 700)
    shares = filtered(logits, settings)
    shares = shares / shares.sum(dim=-1, keepdim=True)
    expected = by_transformers(logits, settings)
    assert torch.equal(shares > 0, expected > 0)
    torch.testing.assert_close(shares, expected, rtol=1e-4, atol=1e-7)


@given(st.lists(st.sampled_from([0.0, 1e-30, 0.25, 1.0, 3.0]), min_size=1, max_size=40), st.data())
def test_nothing_is_drawn_that_has_no_probability(shares, data):
    """Whatever the numbers, also 0 and the largest below 1."""
    if not any(shares):
        shares[-1] = 1.0
    width = max(1, (len(shares) - 1).bit_length())
    edge = st.sampled_from([0.0, 1 - 2.0**-53, 0.5])
    numbers = data.draw(st.lists(edge, min_size=width, max_size=width))
    drawn = draw(torch.tensor([shares]), torch.tensor([numbers], dtype=torch.float64))
    assert shares[int(drawn)] > 0


@pytest.mark.parametrize("settings", SETTINGS[:5], ids=str)
def test_tokens_are_drawn_as_often_as_they_should_be(settings: Sampling) -> None:
    """10,000 samples of one prompt's first token, and of its third, against exact shares."""
    torch.manual_seed(2)
    logits, count = 1.5 * torch.randn(1, 41), 10_000
    expected = by_transformers(logits, settings)[0].double()
    asked = GenerationRequest("a", (1, 2), 4, sampling=settings)
    streams = [stream_of(replace(asked, sample=number)) for number in range(count)]
    for _ in range(3):
        seen = Counter(choose(logits.expand(count, -1), settings, streams).tolist())
        observed = torch.tensor([float(seen[i]) for i in range(41)], dtype=torch.float64)
        assert observed[expected == 0].sum() == 0
        likely = expected * count >= 5  # where chi-square holds; the others are one class
        sums = [
            torch.cat([x[likely], x[~likely].sum()[None]]) for x in (observed, expected * count)
        ]
        keep = sums[1] > 1e-3
        assert chisquare(sums[0][keep], sums[1][keep] * (count / sums[1][keep].sum())).pvalue > 1e-3


def test_streams_differ_in_everything_they_depend_on() -> None:
    base = GenerationRequest("a", (1, 2, 3), 9, sampling=Sampling(temperature=1))
    others = [
        replace(base, sample=1),
        replace(base, tokens=(1, 2, 4)),
        replace(base, sampling=Sampling(temperature=1, seed=1)),
        replace(base, sampling=Sampling(temperature=0.5)),
    ]
    first = stream_of(base).random()
    assert all(stream_of(other).random() != first for other in others)
    named = GenerationRequest("b", (1, 2, 3), 5, sampling=Sampling(temperature=1, n=8))
    assert stream_of(named).random() == first  # neither name, length nor n is in it
    assert first == 0.9119601643475583  # stored samples were drawn by it


@pytest.mark.parametrize("name", tiny.MODELS)
def test_a_sample_depends_on_nothing_beside_it(name: str) -> None:
    """Neither on batch nor on neighbours nor on how many samples there are; bit for bit."""
    model = tiny.model(name)
    stopping = Stopping(frozenset({5}), ("ab",), decode_after)
    settings = [Sampling(temperature=1.0, n=4), Sampling(temperature=0.8, top_p=0.9, seed=3, n=4)]
    prompts = [
        replace(ask, sampling=settings[index % 2]) for index, ask in enumerate(asks(6, longest=45))
    ]
    samples = [replace(ask, sample=number) for ask in prompts for number in range(4)]
    expected = tiny.answers(model, samples + asks(9)[6:], stopping, batch=3)
    for batch in (1, 16):
        assert tiny.answers(model, samples + asks(9)[6:], stopping, batch=batch) == expected
    several = 0
    for index, ask in enumerate(prompts):
        more = [replace(ask, id="other", sample=number) for number in range(16)]
        found = tiny.answers(model, more, stopping, batch=5)
        several += len({answer.tokens for answer in found}) > 1
        assert found[:4] == expected[4 * index : 4 * index + 4]
    assert several > 2
    assert tiny.answers(model, samples[3:4], stopping, batch=1) == expected[3:4]
