import copy

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evaluation.errors import NonFiniteError
from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.engine.rows import score_blocks, score_requests
from evaluation.scoring.window import Request
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
