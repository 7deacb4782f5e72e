"""How many answers are decoded at once, with invented memory."""

import gc
import weakref

import pytest
import torch
from transformers import PreTrainedModel

from evaluation.scoring.engine.generation import generate as decoding
from evaluation.scoring.engine.generation import memory
from evaluation.scoring.engine.generation.kv_cache import Prefix
from evaluation.scoring.engine.generation.memory import rows_in_memory
from tests.scoring import tiny
from tests.scoring.test_generation import FREE, asks

GIGABYTE = 10**9
MODELS = {  # layers, heads of keys and values, width of a head
    "135M": (30, 3, 64),
    "1.7B": (24, 32, 64),
    "8B": (32, 8, 128),
}
CASES = [  # free GB of a GPU, tokens of the longest prompt with its answer, rows by hand
    ("135M", 70, 1024, 1758),  # 70e9 x 0.8 / (1.25 x 1,024 x 23,040 + 48 x 49,152)
    ("1.7B", 70, 2048, 110),
    ("8B", 60, 2048, 142),
    ("8B", 4, 8192, 2),
    ("8B", 0.1, 8192, 1),
]


def example(name: str) -> Prefix:
    layers, heads, width = MODELS[name]
    part = torch.empty(heads, 7, width, dtype=torch.bfloat16, device="meta")
    return Prefix([part] * layers, [part] * layers, 0)


@pytest.mark.parametrize(("name", "free", "columns", "rows"), CASES)
def test_rows_of_real_models(
    name: str, free: float, columns: int, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "free_bytes", lambda device: int(free * GIGABYTE))
    assert rows_in_memory(example(name), columns, 49_152) == rows


def rows_at_once(model: PreTrainedModel, batch: int | None) -> tuple[int, list[str]]:
    seen: list[int] = []

    def note(_: object, __: object, named: dict[str, torch.Tensor]) -> None:
        rows, length = named["input_ids"].shape
        seen.append(rows if length == 1 else 0)

    with model.base_model.register_forward_pre_hook(note, with_kwargs=True):
        found = tiny.answers(model, asks(80), FREE, batch=batch)
    return max(seen), [answer.text for _, answer in sorted(found.items())]


def test_memory_limits_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """80 answers on the CPU: 64 by default, fewer by the configuration or for lack of memory."""
    model = tiny.model("llama")
    most, texts = rows_at_once(model, None)
    assert most == 64
    assert rows_at_once(model, 9) == (9, texts)
    longest = max(len(one.tokens) + one.max_new_tokens for one in asks(80))
    per_row = longest * 1.25 * 3 * 2 * 2 * 8 * 4 + 48 * tiny.VOCABULARY
    monkeypatch.setattr(memory, "free_bytes", lambda device: int(5.5 * per_row / memory.SHARE))
    assert rows_at_once(model, None) == (5, texts)
    assert rows_at_once(model, 3) == (3, texts)


def test_memory_is_free_once_answers_are_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without waiting for the garbage collector: the next batch is as large as free memory allows."""
    batches: list[weakref.ref[decoding.DecodingBatch]] = []

    class Noted(decoding.DecodingBatch):
        def __init__(self, *given: object, **named: object) -> None:
            super().__init__(*given, **named)
            batches.append(weakref.ref(self))

    monkeypatch.setattr(decoding, "DecodingBatch", Noted)
    gc.disable()
    try:
        tiny.answers(tiny.model("llama"), asks(9), FREE, batch=4)
    finally:
        gc.enable()
    assert [batch() for batch in batches] == [None]
