"""Answers as a GPU gives them, on CPU: each step through compiled layers, a few shapes for all."""

import copy

import pytest
import torch
from torch._dynamo.backends.registry import lookup_backend

from evaluation.errors import ScoringError
from evaluation.scoring.answers import Answer, AnswerKey, Stopping
from evaluation.scoring.engine import self_check
from evaluation.scoring.engine.compiled import Compiler
from evaluation.scoring.engine.generation.steps import fixed_rows
from evaluation.settings.generation import Sampling
from tests.scoring import tiny
from tests.scoring.test_compiled import Counting
from tests.scoring.test_generation import asks, decode, few_shot


@pytest.fixture(autouse=True)
def _compiled_anew():
    torch._dynamo.reset()


def answered(name: str, compiler: Compiler | None, given, batch: int) -> dict[AnswerKey, Answer]:
    stopping = Stopping(frozenset({5}), (), decode)
    return tiny.answers(tiny.model(name), given, stopping, batch=batch, compiler=compiler)


@pytest.mark.parametrize("name", tiny.MODELS)
def test_the_same_as_without_a_compiler(name):
    """Rows that end and are refilled, prefixes that are shared, windows, samples."""
    sampled = {"samples": (0, 1, 2), "sampling": Sampling(temperature=1, n=3)}
    given = [*few_shot(6, shared=40), *few_shot(3, shared=36, **sampled), *asks(7)]
    assert answered(name, "aot_eager", given, 5) == answered(name, None, given, 5)


def test_layers_share_a_graph_whatever_is_in_flight():
    """With 4 rows one graph; with 8, and what is left of them, another."""
    counting = Counting()
    answered("llama", counting, asks(30, new=40), 4)
    assert len(counting.graphs) == 1
    answered("llama", counting, few_shot(9, shared=40), 4)
    assert len(counting.graphs) == 1
    answered("llama", counting, asks(5), 8)
    answered("llama", counting, asks(7), 64)
    assert len(counting.graphs) == 2
    assert len(counting.calls("attend_to_step")) == 2
    assert not counting.calls("scaled_dot_product_attention")


@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
def test_generated_code_gives_the_same_answers():
    given = few_shot(6, shared=40)
    assert answered("llama", "inductor", given, 4) == answered("llama", None, given, 4)


def test_the_model_is_left_as_it_was():
    answered("llama", "aot_eager", asks(2), 2)
    model = tiny.model("llama")
    assert not any("forward" in module.__dict__ for module in model.modules())
    assert model.config._attn_implementation == "sdpa"


class Wrong:
    """Compiles layers whose first row is a little off."""

    def __init__(self, amount):
        self.amount = amount

    def __call__(self, graph, inputs):
        run = lookup_backend("aot_eager")(graph, inputs)

        def off(*values):
            outputs = run(*values)
            outputs[0][0] += self.amount * outputs[0][0].roll(1, -1)
            return outputs

        return off


def test_layers_that_compute_something_else_are_refused():
    with pytest.raises(ScoringError, match=r"cannot answer: its compiled layers compute something"):
        answered("llama", Wrong(0.01), asks(4), 4)


def in_bfloat16(compiler):
    model = copy.deepcopy(tiny.model("llama")).to(torch.bfloat16)
    stopping = Stopping(frozenset(), (), decode)
    given = few_shot(6, shared=40)
    return tiny.answers(model, given, stopping, batch=4, compiler=compiler)


def test_in_a_narrow_type_rounding_is_no_error(monkeypatch):
    """Where both ways round more than is allowed by itself, as deep models do."""
    monkeypatch.setitem(self_check.__dict__, "NARROW", 1e-6)
    assert len(in_bfloat16(Wrong(0.003))) == 6
    with pytest.raises(ScoringError, match=r"cannot answer: .* by [1-9]\.\de-0[12] \(relative L2"):
        in_bfloat16(Wrong(0.3))


def test_a_compiler_that_fails_is_one_sentence():
    def failing(graph, inputs):
        raise RuntimeError("Failed to find C compiler. Please specify via CC\nand more")

    with pytest.raises(ScoringError, match=r"cannot be compiled .*\(.*C compiler.*\); .*doctor"):
        answered("llama", failing, asks(4), 4)


@pytest.mark.parametrize(
    ("rows", "most", "fixed"), [(1, 64, 1), (3, 64, 4), (64, 64, 64), (65, 96, 96), (40, 50, 50)]
)
def test_rows_are_few_numbers(rows, most, fixed):
    assert fixed_rows(rows, most) == fixed
