"""What runs on a GPU, on CPU: compiled layers, rows of a few lengths, sparse masks, a compiled head."""

import copy
from subprocess import CalledProcessError

import numpy as np
import pytest
import torch
from torch._dynamo.backends.registry import lookup_backend

from evaluation.errors import ScoringError
from evaluation.scoring.engine import forward
from evaluation.scoring.engine.forward import Engine, Head
from evaluation.scoring.engine.rows import score_blocks, score_requests
from evaluation.scoring.window import Request
from tests.scoring import tiny
from tests.scoring.strategies import random_requests

ROW_TOKENS = 512
STARTS = torch.tensor([0, 7, 31, 230, 400, 601])


class Counting:
    """Compiles without generating code, and keeps the graphs."""

    def __init__(self):
        self.graphs = []

    def __call__(self, graph, inputs):
        self.graphs.append(graph)
        return lookup_backend("aot_eager")(graph, inputs)

    def calls(self, name):
        return [
            node for graph in self.graphs for node in graph.graph.nodes if name in str(node.target)
        ]


@pytest.fixture
def counting():
    torch._dynamo.reset()
    return Counting()


def text(blocks=5, length=200, seed=1):
    return torch.randint(
        0, tiny.VOCABULARY, (blocks, length), generator=torch.Generator().manual_seed(seed)
    )


def engine(name, compiler, model=None):
    model = model or copy.deepcopy(tiny.model(name))
    return Engine(model, row_tokens=ROW_TOKENS, device="cpu", compiler=compiler)


@pytest.mark.parametrize("name", ["llama", "qwen2-sliding", "smollm3-sliding", "qwen2-moe"])
def test_compiled_scores_are_those_of_plain_passes(name, counting):
    """Tries, text and documents; with windows shorter and rows longer than a block."""
    scored, plain = engine(name, counting), tiny.engine(name, ROW_TOKENS)
    found, expected = (tiny.logprobs(one, random_requests()) for one in (scored, plain))
    np.testing.assert_allclose(found, expected, atol=1e-4, rtol=0)
    for begins in (None, STARTS):
        found, count = tiny.text_nats(scored, text(), begins)
        expected, wanted = tiny.text_nats(plain, text(), begins)
        np.testing.assert_allclose(found, expected, atol=1e-3, rtol=0)
        assert (count == wanted).all()
    assert scored.model.config._attn_implementation == "sdpa"


def test_layers_share_a_graph_for_each_length_and_models_share_them_too(counting):
    """Graphs of 3 lengths of rows, of their masks, and of the head."""
    counts = []
    for model in range(3):
        scored = engine("llama", counting)
        for seed in (1, 2):
            score_requests(scored, random_requests(24, seed + model))
            score_requests(scored, [Request((seed, model), (3, 4))])
            for blocks in (5, 2, 1):
                score_blocks(scored, text(blocks, seed=seed))
                score_blocks(scored, text(blocks, seed=seed), STARTS[blocks * 200 > STARTS])
        counts.append(len(counting.graphs))
    assert len(counting.calls("flex_attention")) == 3
    assert not counting.calls("scaled_dot_product_attention")
    assert counts == [3 + 3 + 1] * 3


@pytest.mark.parametrize("pairs", [1, 3, 40])
@pytest.mark.parametrize("spread", [1, 500])
def test_heads_score_as_log_softmax(pairs, spread, counting, monkeypatch):
    """Plain and compiled, in chunks of 4; large logits neither overflow nor lose precision."""
    monkeypatch.setattr(forward, "CHUNK_LOGITS", {"cpu": 4 * 40})
    model = copy.deepcopy(tiny.model("llama"))
    heads = Head(model), Head(model, counting)
    torch.manual_seed(1)
    with torch.inference_mode():
        for queries in (1, 2, 7, 13):
            hidden = spread * torch.randn(queries, 32)
            query = torch.arange(queries).repeat_interleave(pairs)
            token = torch.randint(0, 40, (len(query),))
            logits = model.lm_head(hidden)
            expected = logits.double().log_softmax(-1)[query, token]
            for head in heads:
                assert head.rows == 4
                logprob, is_greedy = head.score(hidden, query.numpy(), token.numpy())
                torch.testing.assert_close(logprob.double(), expected, atol=1e-6, rtol=1e-5)
                assert torch.equal(is_greedy, logits.argmax(-1)[query] == token)
    assert len(counting.graphs) <= 2  # one of a single query


class Wrong:
    """Compiles layers that are a little off in the last rows of a block, as a bad kernel may be."""

    def __init__(self, first, factor):
        self.first, self.factor = first, factor

    def __call__(self, graph, inputs):
        run = lookup_backend("aot_eager")(graph, inputs)

        def off(*values):
            outputs = run(*values)
            if outputs[0].dim() == 3 and outputs[0].shape[1] > self.first:
                outputs[0][:, self.first :] *= self.factor
            return outputs

        return off


def test_layers_that_are_wrong_beyond_a_block_are_refused():
    torch._dynamo.reset()
    scored = engine("llama", Wrong(130, 1.01))
    with pytest.raises(ScoringError, match=r"its own log-probabilities differ .*compile: off"):
        score_blocks(scored, text(2))
    assert scored.model.config._attn_implementation == "sdpa"


def test_layers_that_cannot_be_compiled_are_one_sentence():
    def fails(*_):
        raise CalledProcessError(1, ["gcc"])

    torch._dynamo.reset()
    with pytest.raises(ScoringError, match=r"cannot be scored: .*gcc.*scoring\.compile: off"):
        score_blocks(engine("llama", fails), text(2))
