"""Results are fetched a pass late, and nothing waits in between."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.engine.rows import score_blocks, score_requests
from evaluation.scoring.engine.window import Request
from tests.scoring import tiny


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
