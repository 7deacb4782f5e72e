"""Greedy decoding in batches against a plain forward pass for every token."""

import itertools
import random

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedModel

from evaluation.errors import NonFiniteError
from evaluation.scoring.engine.generation import (
    Answer,
    GenerationRequest,
    Stopping,
    _groups,
    _Row,
    generate,
)
from tests.scoring import tiny

LETTERS = "!abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def decode(tokens: list[int]) -> str:
    return "".join(LETTERS[token] for token in tokens)


def asks(count: int, *, longest: int = 20, new: int = 12) -> list[GenerationRequest]:
    draw = random.Random(7)
    return [
        GenerationRequest(
            f"probe-{index}",
            tuple(draw.randrange(tiny.VOCABULARY) for _ in range(draw.randint(1, longest))),
            draw.randint(1, new),
        )
        for index in range(count)
    ]


@torch.inference_mode()
def plain(
    model: PreTrainedModel, ask: GenerationRequest, stopping: Stopping, vocabulary: int
) -> Answer:
    """One token after the other, each by a forward pass over everything before it."""
    tokens: list[int] = []
    while len(tokens) < ask.max_new_tokens:
        ids = torch.tensor([[*ask.tokens, *tokens]])
        token = int(model(input_ids=ids, use_cache=False).logits[0, -1, :vocabulary].argmax())
        if token in stopping.eos_ids:
            return Answer(decode(tokens), tuple(tokens), "eos")
        tokens.append(token)
        text = decode(tokens)
        for stop in stopping.strings:
            if stop in text:
                return Answer(text[: text.index(stop)], tuple(tokens), "stop_string")
    return Answer(decode(tokens), tuple(tokens), "length")


def run(
    model: PreTrainedModel,
    given: list[GenerationRequest],
    stopping: Stopping,
    *,
    batch: int,
    vocabulary: int = tiny.VOCABULARY,
) -> list[Answer]:
    parts = generate(model, given, stopping, vocabulary=vocabulary, batch=batch, device="cpu")
    answers = {index: answer for part in parts for index, answer in part.items()}
    return [answers[index] for index in range(len(given))]


@pytest.mark.parametrize("name", tiny.MODELS)
def test_batches_answer_as_single_prompts_do(name: str) -> None:
    """Also where a sliding window is shorter than the prompts, and without position embeddings."""
    model = tiny.model(name)
    stopping = Stopping(frozenset({5, 11}), (), decode)
    given = asks(9)
    expected = [plain(model, ask, stopping, tiny.VOCABULARY) for ask in given]
    for batch in (1, 4, 64):
        assert run(model, given, stopping, batch=batch) == expected


def test_all_stop_reasons_occur_and_agree_with_the_plain_way() -> None:
    model = tiny.model("llama")
    given = asks(30)
    free = Stopping(frozenset(), (), decode)
    said = [answer.text for answer in run(model, given, free, batch=30)]
    pairs = sorted({text[start : start + 2] for text in said for start in range(len(text) - 1)})
    stopping = Stopping(frozenset({LETTERS.index(said[0][-1])}), tuple(pairs[::6]), decode)
    expected = [plain(model, ask, stopping, tiny.VOCABULARY) for ask in given]
    assert {answer.stop_reason for answer in expected} == {"eos", "stop_string", "length"}
    for batch in (1, 7, 30):
        assert run(model, given, stopping, batch=batch) == expected


def test_token_zero_is_a_token_like_any_other() -> None:
    """Padding is made of zeros too: neither a prompt nor an answer with 0 in it may change."""
    model = tiny.model("qwen2")
    stopping = Stopping(frozenset(), (), decode)
    given = [
        GenerationRequest("zeros", (0, 0, 0), 5),
        GenerationRequest("longer", tuple(range(17)), 5),
        GenerationRequest("one", (0,), 5),
    ]
    expected = [plain(model, ask, stopping, tiny.VOCABULARY) for ask in given]
    assert run(model, given, stopping, batch=3) == expected


def test_padded_vocabulary_is_never_chosen() -> None:
    model = tiny.model("llama")
    free = Stopping(frozenset(), (), decode)
    given = asks(6, new=12)
    answers = run(model, given, free, batch=6, vocabulary=10)
    assert all(token < 10 for answer in answers for token in answer.tokens)
    assert answers == [plain(model, ask, free, 10) for ask in given]
    everything = run(model, given, free, batch=6)
    assert any(token >= 10 for answer in everything for token in answer.tokens)


def test_attention_is_given_back_as_it_was() -> None:
    model = tiny.model("llama")
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")
    run(model, asks(2), Stopping(frozenset(), (), decode), batch=2)
    assert model.config._attn_implementation == "eager"
    model.set_attn_implementation(before)


def test_nan_names_the_probe() -> None:
    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(**tiny.SHAPE)).eval()
    with torch.no_grad():
        model.model.embed_tokens.weight[7] = float("nan")
    given = [GenerationRequest("sound", (1, 2), 1), GenerationRequest("broken", (1, 7, 2, 3), 1)]
    with pytest.raises(NonFiniteError, match=r"probe broken: .* token 1 of its answer"):
        run(model, given, Stopping(frozenset(), (), decode), batch=2)


@pytest.mark.parametrize(("stop", "cut"), [("cd", "ab"), ("a", ""), ("bc", "a"), ("x", "abcd")])
def test_text_is_cut_at_the_first_stop_string(stop: str, cut: str) -> None:
    stopping = Stopping(frozenset(), ("zz", stop), decode)
    assert stopping.cut([1, 2, 3, 4]) == (cut, stop != "x")


def test_a_stop_string_may_span_tokens_and_characters() -> None:
    """Byte tokens: `é` is two of them, and the stop string ends inside a longer token."""
    pieces = [b"end", b" \xc3", b"\xa9t", b"op!", b"more"]
    stopping = Stopping(
        frozenset(), ("éto",), lambda ids: b"".join(pieces[i] for i in ids).decode(errors="replace")
    )
    reached = [stopping.reached(list(range(count))) for count in range(1, 6)]
    assert reached[:4] == [False, False, False, True]
    assert stopping.cut([0, 1, 2, 3]) == ("end ", True)


def test_prompts_are_read_in_groups_with_little_padding() -> None:
    stopping = Stopping(frozenset(), (), decode)
    lengths = sorted([200, 195, 180, 90, 88, 80, 75, 10, 10, 9, 3], reverse=True)
    rows = [_Row(GenerationRequest("", (1,) * length, 1), stopping) for length in lengths]
    groups = [[len(row.request.tokens) for row in group] for group in _groups(rows)]
    assert list(itertools.chain(*groups)) == lengths
    padded = sum(len(group) * group[0] for group in groups)
    assert padded < 1.1 * sum(lengths)
    many = [_Row(GenerationRequest("", (1,) * 1000, 1), stopping) for _ in range(20)]
    assert max(len(group) for group in _groups(many)) == 8
