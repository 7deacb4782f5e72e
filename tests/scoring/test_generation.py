"""Answers of many prompts at once against a plain forward pass for every token."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
import torch
from transformers import PreTrainedModel

from evaluation.errors import NonFiniteError
from evaluation.scoring.answers import Answer, GenerationRequest, Stopping
from evaluation.scoring.engine import generate as decoding
from evaluation.scoring.engine import slots
from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.engine.generate import generate
from evaluation.settings.generation import Sampling
from tests.scoring import tiny
from tests.scoring.tiny import LETTERS, answers, decode, decode_after


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
    model: PreTrainedModel,
    ask: GenerationRequest,
    stopping: Stopping,
    vocabulary: int | None = None,
) -> Answer:
    """One token after the other, each by a forward pass over everything before it."""
    tokens: list[int] = []
    while len(tokens) < ask.max_new_tokens:
        ids = torch.tensor([[*ask.tokens, *tokens]])
        token = int(model(input_ids=ids, use_cache=False).logits[0, -1, :vocabulary].argmax())
        if token in stopping.eos_ids:
            return stopping.answer([], tokens, "eos")
        tokens.append(token)
        if any(stop in decode(tokens) for stop in stopping.strings):
            return stopping.answer([], tokens, "stop_string")
    return stopping.answer([], tokens, "length")


def test_all_stop_reasons_occur_and_agree_with_the_plain_way() -> None:
    model = tiny.model("llama")
    given = asks(30)
    said = [answer.text for answer in answers(model, given, batch=30)]
    pairs = sorted({text[start : start + 2] for text in said for start in range(len(text) - 1)})
    stopping = Stopping(frozenset({LETTERS.index(said[0][-1])}), tuple(pairs[::6]), decode_after)
    expected = [plain(model, ask, stopping) for ask in given]
    assert {answer.stop_reason for answer in expected} == {"eos", "stop_string", "length"}
    for batch in (1, 7, 30):
        assert answers(model, given, stopping, batch=batch) == expected


@contextmanager
def passes(model: PreTrainedModel) -> Iterator[list[tuple[int, int]]]:
    """Rows and tokens of each row, of every pass of the model's body."""
    seen: list[tuple[int, int]] = []

    def note(_: torch.nn.Module, __: object, named: dict[str, torch.Tensor]) -> None:
        seen.append(tuple(named["input_ids"].shape))

    with model.base_model.register_forward_pre_hook(note, with_kwargs=True):
        yield seen


def tokens_read(seen: list[tuple[int, int]]) -> int:
    """Tokens of prompts; an answer is read token by token."""
    return sum(rows * length for rows, length in seen if length > 1)


def few_shot(count: int, *, shared: int) -> list[GenerationRequest]:
    """Prompts that have the same number of tokens behind those that they share."""
    draw = random.Random(3)
    stem = tuple(draw.randrange(tiny.VOCABULARY) for _ in range(shared))
    return [
        GenerationRequest(
            f"shot-{index}",
            stem + tuple(draw.randrange(tiny.VOCABULARY) for _ in range(5)),
            draw.randint(1, 9),
        )
        for index in range(count)
    ]


@pytest.mark.parametrize("name", tiny.MODELS)
def test_batches_answer_as_single_prompts_do(name: str) -> None:
    """Also where a sliding window begins within the prompt, or a prefix that is read once."""
    model = tiny.model(name)
    stopping = Stopping(frozenset({5, 11}), (), decode_after)
    given = asks(9) + few_shot(8, shared=40) + few_shot(3, shared=35)[1:]
    expected = [plain(model, ask, stopping) for ask in given]
    for batch in (1, 5, 64):
        with passes(model) as seen:
            assert answers(model, given, stopping, batch=batch) == expected
        assert tokens_read(seen) < sum(len(ask.tokens) for ask in given) - 7 * 40


def test_a_prompt_is_read_once_for_all_its_samples() -> None:
    model = tiny.model("llama")
    given = few_shot(3, shared=40)
    sampling = Sampling(temperature=1, n=7)
    samples = [replace(ask, sample=n, sampling=sampling) for ask in given for n in range(7)]
    for batch in (2, 64):
        with passes(model) as seen:
            answers(model, samples, batch=batch)
        assert tokens_read(seen) == sum(len(ask.tokens) for ask in given) - 2 * 40


def test_parts_come_while_others_are_still_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "PART_SECONDS", 0)
    model = tiny.model("llama")
    asked, sizes = dict(enumerate(asks(40))), []
    engine = Engine(model, row_tokens=64, device="cpu")
    for part in generate(engine, asked, vocabulary=tiny.VOCABULARY, batch=8):
        assert model.config._attn_implementation == "sdpa"
        assert not torch.is_inference_mode_enabled()
        sizes.append(len(part))
    assert sum(sizes) == 40
    assert max(sizes) <= 8


@pytest.mark.parametrize(("kilobytes", "rows"), [(0, 1), (512, 15)])
def test_fewer_rows_are_decoded_where_memory_is_for_fewer(
    kilobytes: int, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slot takes 64 columns of 3 layers x 2 x 2 x 8 x 4 bytes, and 48 bytes for each id."""
    model = tiny.model("llama")
    given = asks(30, longest=40)
    expected = answers(model, given, batch=30)
    monkeypatch.setattr(slots, "usable_memory", lambda: kilobytes << 10)
    with passes(model) as seen:
        assert answers(model, given, batch=30) == expected
    assert max(count for count, length in seen if length == 1) == rows


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(temperature=1, top_k=9, top_p=0.5)])
def test_nan_names_the_prompt(sampling: Sampling) -> None:
    model = tiny.build("LlamaForCausalLM")
    given = asks(4)
    texts = [
        *(one.tokens for one in given),
        *(one.tokens for one in answers(model, given, batch=3)),
    ]
    unused = min(set(range(tiny.VOCABULARY)) - {token for text in texts for token in text})
    model.model.embed_tokens.weight[unused] = float("nan")
    broken = GenerationRequest("broken", (1, unused, 2, 3), 1, sampling=sampling)
    with pytest.raises(NonFiniteError, match=r"prompt .*: the model returns NaN"):
        answers(model, [*given, broken], batch=3)
