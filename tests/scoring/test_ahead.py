"""Rows packed by a thread, results fetched a pass late, and nothing that waits in between."""

import contextlib
import threading
import time

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.engine.rows import AHEAD, ahead, score_blocks, score_requests
from evaluation.scoring.engine.window import Request
from tests.scoring import tiny


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("ahead")]


def test_batches_come_in_order_and_only_so_many_are_made_ahead():
    made = []
    with contextlib.closing(ahead(made.append(i) or i for i in range(50))) as items:
        assert next(items) == 0
        time.sleep(0.3)
        assert len(made) == 1 + AHEAD
        assert list(items) == list(range(1, 50))
    with contextlib.closing(ahead(iter(int, 1))) as endless:
        assert next(endless) == 0
        assert threads()
    assert not threads()


def test_what_goes_wrong_is_raised_after_what_went_right():
    def broken():
        yield 1
        yield 2
        raise ValueError("row 3")

    seen = []
    with pytest.raises(ValueError, match="row 3"), contextlib.closing(ahead(broken())) as items:
        seen.extend(items)
    assert seen == [1, 2]
    assert not threads()


def test_an_interrupt_in_a_pass_ends_the_thread(monkeypatch):
    scored = Engine(tiny.model("llama"), row_tokens=20, device="cpu")

    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(scored, "launch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        score_blocks(scored, torch.ones(30, 20, dtype=torch.long))
    assert not threads()
    assert scored.model.config._attn_implementation == "sdpa"


class Questions(TorchDispatchMode):
    """Notes operations whose result the host has to wait for, wherever in torch they are called."""

    WAITING = frozenset(
        {"_local_scalar_dense", "nonzero", "masked_select", "equal", "unique_dim", "_unique2"}
    )

    def __init__(self):
        super().__init__()
        self.events = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func._schema.name.split("::")[1].split(".")[0] in self.WAITING:
            self.events.append(func._schema.name)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("name", ["llama", "qwen2-sliding", "smollm3-sliding"])
def test_a_pass_is_fetched_when_the_next_has_begun_and_nothing_else_waits(name, monkeypatch):
    scored = Engine(tiny.model(name), row_tokens=20, device="cpu")
    asked = [Request((i, 2, 3), (i, 4)) for i in range(12)]
    score_requests(scored, asked)
    launch, questions = scored.launch, Questions()

    def watched(batch):
        questions.events.append("begin")
        with questions:
            pending = launch(batch)
        fetch = pending.wait
        pending.wait = lambda: questions.events.append("fetch") or fetch()
        return pending

    monkeypatch.setattr(scored, "launch", watched)
    for run in (
        lambda: score_blocks(
            scored, torch.arange(80).reshape(4, 20) % 40, torch.tensor([0, 7, 33])
        ),
        lambda: score_blocks(scored, torch.ones(4, 20, dtype=torch.long)),
        lambda: score_requests(scored, asked),
    ):
        questions.events.clear()
        run()
        later = ["begin", "fetch"] * (questions.events.count("begin") - 1)
        assert questions.events == ["begin", *later, "fetch"]
