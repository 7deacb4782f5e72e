import copy

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig

from evaluation.errors import NonFiniteError, ScoringError
from evaluation.scoring.engine.backend import EngineBackend
from evaluation.scoring.engine.compiled import INDUCTOR
from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.engine.loglikelihood import score_blocks, score_requests
from evaluation.scoring.engine.window import Request
from evaluation.settings.computing import Scoring
from tests.scoring import tiny
from tests.scoring.strategies import requests

few = settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])


def logprobs(scored: Engine, asked: list[Request]) -> np.ndarray:
    return np.array([score.logprob for score in score_requests(scored, asked)])


@pytest.mark.parametrize("name", tiny.MODELS)
@few
@given(asked=requests(largest=3, longest=10), row_tokens=st.sampled_from([1, 24, 200]))
def test_tries_score_as_plain_forward_passes(name, asked, row_tokens):
    scores = logprobs(tiny.engine(name, row_tokens), asked)
    plain = [tiny.plain_score(tiny.model(name), request) for request in asked]
    np.testing.assert_allclose(scores, plain, atol=1e-4, rtol=0)


@few
@given(requests(largest=5, longest=8), st.randoms(use_true_random=False))
def test_rows_order_and_batches_do_not_matter(asked, random):
    expected = logprobs(tiny.engine(), asked)
    order = random.sample(range(len(asked)), len(asked))
    scored = Engine(tiny.model("llama"), row_tokens=random.randrange(1, 99), device="cpu")
    capacity = random.randrange(1, 80)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scored, "row_capacity", lambda _, shortest: capacity)
        shuffled = logprobs(scored, [asked[i] for i in order])
    np.testing.assert_allclose(shuffled, expected[order], atol=1e-4, rtol=0)


@pytest.mark.parametrize("name", ["llama", "qwen2-sliding", "smollm3-nope"])
def test_documents_are_scored_alone(name):
    """Documents [0..4], [5..18 over the block's end], [19], [20..]; a block begins one anew."""
    tokens = torch.randint(0, tiny.VOCABULARY, (3, 12), generator=torch.Generator().manual_seed(2))
    starts = torch.tensor([0, 5, 19, 20])
    nats, scored, *_ = score_blocks(tiny.engine(name), tokens, starts)
    flat = tokens.flatten().tolist()
    documents = [[(0, 5), (5, 12)], [(12, 19), (19, 20), (20, 24)], [(24, 36)]]
    plain = [
        -sum(
            float(tiny.plain_logprobs(tiny.model(name), tuple(flat[a:b])).sum())
            for a, b in block
            if b - a > 1
        )
        for block in documents
    ]
    np.testing.assert_allclose(nats, plain, atol=1e-4, rtol=0)
    assert scored.tolist() == [10, 9, 11]


def test_a_block_of_single_token_documents_has_nothing_to_score():
    nats, scored, *_ = score_blocks(
        tiny.engine(), torch.ones(2, 3, dtype=torch.long), torch.arange(3)
    )
    assert scored.tolist() == [0, 2]
    assert nats[0] == 0 < nats[1]


def test_no_requests_no_scores():
    assert score_requests(tiny.engine(), []) == []


def test_progress_goes_to_stderr(capsys):
    score_requests(tiny.engine(), [Request((1,), (2,))], progress="Tier3 tiny")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Tier3 tiny: 100%" in captured.err


def broken(value: float) -> Engine:
    """An engine whose model breaks wherever it reads token 7."""
    model = copy.deepcopy(tiny.model("qwen2"))
    model.get_input_embeddings().weight[7] = value
    return Engine(model, row_tokens=32, device="cpu")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_nan_names_the_request(value):
    asked = [Request((1, 2), (3,), "piqa/0"), Request((1, 7), (3,), "piqa/1, candidate 0")]
    with pytest.raises(NonFiniteError, match=r"^piqa/1, candidate 0: the model gives NaN"):
        score_requests(broken(value), asked)
    blocks = torch.tensor([[1, 2, 3], [1, 7, 3]])
    with pytest.raises(NonFiniteError, match=r"^block 1: "):
        score_blocks(broken(value), blocks)


def test_foreign_tokens_are_refused():
    with pytest.raises(ScoringError, match=r"token 40 is requested, but .* 40 rows"):
        score_requests(tiny.engine(), [Request((1,), (40,))])


class Scaled(type(tiny.model("llama"))):
    """A model that does more behind its head than a linear layer."""

    def forward(self, *args, **kwargs):
        output = super().forward(*args, **kwargs)
        output.logits = output.logits / 3
        return output


def test_models_that_cannot_be_reproduced_are_refused():
    scaled = Scaled(LlamaConfig(**tiny.SHAPE)).eval()
    with pytest.raises(ScoringError, match="Scaled cannot be scored"):
        Engine(scaled, row_tokens=64, device="cpu")


def test_what_is_refused_compiled_and_plain_is_an_error(monkeypatch, caplog):
    monkeypatch.setitem(INDUCTOR, "cpu", "aot_eager")
    backend = EngineBackend(Scoring(device="cpu"), None, lambda: None)
    backend.model = Scaled(LlamaConfig(**tiny.SHAPE)).eval()
    assert backend.layers == "compiled"
    with pytest.raises(ScoringError, match=r"^Scaled cannot be scored: .* by a `command`"):
        backend.log_likelihoods([Request((1,), (2,))], label="task")
    assert backend.layers == "plain"
    (warning,) = (one for one in caplog.messages if one.startswith("Scaled"))
    assert warning.startswith(
        "Scaled, compiled, cannot be scored: its own log-probabilities differ"
    )
    assert warning.endswith("; layers run without being compiled, which is slower")
    assert backend.model.config._attn_implementation == "sdpa"


def test_other_classes_work_where_they_take_a_mask():
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=40, n_embd=32, n_layer=2, n_head=2, initializer_range=0.3)
    model = GPT2LMHeadModel(config).eval()
    asked = [Request((1, 2), (3, 4)), Request((1, 2), (5,)), Request((1,), (6, 7, 8))]
    scores = logprobs(Engine(model, row_tokens=64, device="cpu"), asked)
    plain = [tiny.plain_score(model, request) for request in asked]
    np.testing.assert_allclose(scores, plain, atol=1e-4, rtol=0)


def test_bfloat16_gives_float32_logits():
    model = copy.deepcopy(tiny.model("llama")).to(torch.bfloat16)
    scored = Engine(model, row_tokens=64, device="cpu")
    logits = scored.head.logits(torch.randn(3, 32, dtype=torch.bfloat16))
    assert logits.dtype == torch.float32
    assert (logits != logits.to(torch.bfloat16).float()).any()


def small_gpu(monkeypatch, most, compiler=None):
    """A backend whose model runs out of memory above so many tokens in a pass."""
    backend = EngineBackend(Scoring(device="cpu", cpu_row_tokens=4096), None, lambda: None)
    model = tiny.model("llama")
    backend.engine = Engine(model, row_tokens=4096, device="cpu", compiler=compiler)
    run = backend.engine.hidden

    def hidden(batch):
        if batch.tokens.numel() > most:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return run(batch)

    monkeypatch.setattr(backend.engine, "hidden", hidden)
    return backend


def test_too_little_memory_halves_the_pass_and_changes_no_score(monkeypatch):
    asked = [Request((i % 7, i % 11, i % 13), (i % 5, 3)) for i in range(400)]
    blocks = torch.arange(60 * 20).reshape(60, 20) % tiny.VOCABULARY
    plain = Engine(tiny.model("llama"), row_tokens=4096, device="cpu")
    backend = small_gpu(monkeypatch, 300)
    found = backend.log_likelihoods(asked, label="task")
    wanted = score_requests(plain, asked)
    assert backend.row_tokens in (256, 512)
    torch.testing.assert_close(
        [one.logprob for one in found], [one.logprob for one in wanted], atol=1e-5, rtol=0
    )
    assert [one.is_greedy for one in found] == [one.is_greedy for one in wanted]
    nats, scored, *_ = backend.block_nats(blocks, None, label="slice")
    expected, count, *_ = score_blocks(plain, blocks)
    torch.testing.assert_close(torch.tensor(nats), torch.tensor(expected), atol=1e-4, rtol=0)
    assert (scored == count).all()


def test_too_little_memory_makes_fixed_shapes_smaller(monkeypatch):
    """Compiled, where a pass is always padded to its shape; also while a shape is checked."""
    asked = [Request((i % 7, i % 11, i % 13), (i % 5, 3)) for i in range(400)]
    backend = small_gpu(monkeypatch, 600, "aot_eager")
    found = backend.log_likelihoods(asked, label="task")
    wanted = score_requests(tiny.engine(), asked)
    assert backend.row_tokens == 512
    torch.testing.assert_close(
        [one.logprob for one in found], [one.logprob for one in wanted], atol=1e-4, rtol=0
    )
    assert backend.engine.model.config._attn_implementation == "sdpa"
