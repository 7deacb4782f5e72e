import copy

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evaluation.errors import NonFiniteError
from evaluation.scoring.engine.backend import EngineBackend
from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.engine.rows import score_blocks, score_requests
from evaluation.scoring.window import Request
from evaluation.settings.computing import Scoring
from tests.scoring import tiny
from tests.scoring.strategies import requests

few = settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.parametrize("name", tiny.MODELS)
@few
@given(asked=requests(largest=3, longest=10), row_tokens=st.sampled_from([1, 24, 200]))
def test_tries_score_as_plain_forward_passes(name, asked, row_tokens):
    scores = tiny.logprobs(tiny.engine(name, row_tokens), asked)
    plain = [tiny.plain_score(tiny.model(name), request) for request in asked]
    np.testing.assert_allclose(scores, plain, atol=1e-4, rtol=0)


def test_a_block_of_single_token_documents_has_nothing_to_score():
    blocks = torch.ones(2, 3, dtype=torch.long)
    nats, scored = tiny.text_nats(tiny.engine(), blocks, torch.arange(3))
    assert scored.tolist() == [0, 2]
    assert nats[0] == 0 < nats[1]
    for tokens, starts in ((blocks, torch.arange(6)), (blocks[:, :1], None)):
        nats, scored = tiny.text_nats(tiny.engine(), tokens, starts)
        assert (nats.tolist(), scored.tolist()) == ([0, 0], [0, 0])


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_nan_names_the_request(value):
    model = copy.deepcopy(tiny.model("qwen2"))
    model.get_input_embeddings().weight[7] = value
    scored = Engine(model, row_tokens=8, device="cpu")
    asked = [Request((1, 2, i), (3,), f"piqa/{i}") for i in range(20)]
    with pytest.raises(
        NonFiniteError, match=r"^piqa/\d+, or what shares its row: the model returns NaN"
    ):
        score_requests(scored, asked)
    blocks = torch.tensor([[1, 2, 3], [1, 7, 3]])
    with pytest.raises(NonFiniteError, match=r"^block [01], or what shares its row"):
        score_blocks(scored, blocks)


def small_gpu(monkeypatch, most, compiler=None):
    """A backend whose model runs out of memory above so many tokens in a pass."""
    backend = EngineBackend(Scoring(device="cpu", cpu_row_tokens=4096), None, lambda: None)
    model = copy.deepcopy(tiny.model("llama"))
    backend.engine = Engine(model, row_tokens=4096, device="cpu", compiler=compiler)
    run = backend.engine.hidden

    def hidden(batch, cache=None):
        if batch.tokens.size > most:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return run(batch, cache)

    monkeypatch.setattr(backend.engine, "hidden", hidden)
    return backend


@pytest.mark.parametrize(("compiler", "most"), [(None, 300), ("aot_eager", 600)])
def test_too_little_memory_halves_the_pass_and_changes_no_score(compiler, most, monkeypatch):
    """Compiled, a pass may fail while it is checked."""
    asked = [Request((i % 7, i % 11, i % 13), (i % 5, 3)) for i in range(400)]
    backend = small_gpu(monkeypatch, most, compiler)
    found = backend.log_likelihoods(asked)
    wanted = score_requests(tiny.engine(), asked)
    assert backend.row_tokens in (256, 512)
    logprobs, expected = ([one.logprob for one in each] for each in (found, wanted))
    np.testing.assert_allclose(logprobs, expected, atol=1e-4, rtol=0)
    assert backend.engine.model.config._attn_implementation == "sdpa"
    if compiler is None:
        assert [one.is_greedy for one in found] == [one.is_greedy for one in wanted]
        blocks = torch.arange(60 * 20).reshape(60, 20) % tiny.VOCABULARY
        nats, scored = (part.sum(axis=1) for part in backend.block_nats(blocks, None))
        by_plain, count = tiny.text_nats(tiny.engine(), blocks)
        np.testing.assert_allclose(nats, by_plain, atol=1e-4, rtol=0)
        assert (scored == count).all()
