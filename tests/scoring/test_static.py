"""Static decoding beside the plain loop; on the CPU, a stand-in for a CUDA graph replays in place."""

import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers import PreTrainedModel

from evaluation.errors import NonFiniteError
from evaluation.scoring.answers import Answer, AnswerKey, GenerationRequest, Stopping
from evaluation.scoring.engine.generation import generate as generating
from evaluation.scoring.engine.generation import graphs as graphing
from evaluation.scoring.engine.generation.check import decoding_fault
from evaluation.scoring.engine.generation.generate import generate
from evaluation.scoring.engine.generation.kv_cache import Slots
from evaluation.settings.generation import Sampling
from tests.scoring import tiny
from tests.scoring.test_generation import FREE, asks, few_shot

STOPPING = Stopping(frozenset({5, 11}), ("ab", "Kc"), tiny.decode_after)


class RecordedOperations(TorchDispatchMode):
    """What the device does, with the memory that it reads and writes: Python does not run again."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Any, Any, Any, Any]] = []

    def __torch_dispatch__(
        self, function: Any, types: Any, given: Any = (), named: Any = None
    ) -> Any:
        assert "_local_scalar_dense" not in str(function), "the host waits for the device"
        result = function(*given, **(named or {}))
        self.calls.append((function, given, named or {}, result))
        return result

    @property
    def launches(self) -> list[str]:
        """What computes or copies: its result is new memory, or it writes into what it was given."""
        found = []
        for function, given, named, result in self.calls:
            before = {one.untyped_storage().data_ptr() for one in _tensors((given, named))}
            after = {one.untyped_storage().data_ptr() for one in _tensors(result)}
            if after - before or function._schema.is_mutable:
                found.append(function.overloadpacket.__name__)
        return found

    def replay(self) -> None:
        for function, given, named, result in self.calls:
            again = function(*given, **named)
            for before, now in zip(tree_leaves(result), tree_leaves(again), strict=True):
                if before.data_ptr() != now.data_ptr():
                    before.copy_(now)


def _tensors(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


class StandInGraphs:
    """Captures and replays, by their number of rows and columns."""

    def __init__(self) -> None:
        self.captured: list[RecordedOperations] = []
        self.replayed = 0

    def capture(
        self, compute: Callable[[], torch.Tensor]
    ) -> tuple[Callable[[], None], torch.Tensor]:
        recorded = RecordedOperations()
        with recorded:
            result = compute()
        self.captured.append(recorded)

        def replay() -> None:
            self.replayed += 1
            recorded.replay()

        return replay, result


@pytest.fixture
def graphs(monkeypatch: pytest.MonkeyPatch) -> StandInGraphs:
    made = StandInGraphs()
    monkeypatch.setattr(graphing, "capture", made.capture)
    return made


def answers(
    model: PreTrainedModel,
    given: list[GenerationRequest],
    batch: int,
    *,
    replays: bool = False,
) -> dict[AnswerKey, Answer]:
    parts = generate(
        model, given, vocabulary=tiny.VOCABULARY, batch=batch, device="cpu", replays=replays
    )
    return {key: answer for part in parts for key, answer in part.items()}


def sampled() -> list[GenerationRequest]:
    """Several samples of prompts with a common beginning, short and long ones, some of them greedy."""
    hot = Sampling(temperature=1.2, top_k=12, top_p=0.9, seed=3, n=5)
    long = few_shot(5, shared=40, samples=(0, 1, 2, 4), sampling=hot, stopping=STOPPING)
    return [*long, *(replace(one, stopping=STOPPING) for one in asks(20))]


@pytest.mark.parametrize("name", tiny.MODELS)
def test_replayed_steps_give_the_same_answers(name: str, graphs: StandInGraphs) -> None:
    model, given = tiny.model(name), sampled()
    for batch in (1, 6, 64):
        expected = answers(model, given, batch)
        assert {answer.stop_reason for answer in expected.values()} >= {"eos", "length"}
        assert answers(model, given, batch, replays=True) == expected
    assert graphs.replayed > 5 * len(graphs.captured) > 0


def test_what_cannot_be_captured_is_launched(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: object) -> None:
        raise RuntimeError("operation not permitted when stream is capturing")

    monkeypatch.setattr(graphing, "capture", fail)
    model, given = tiny.model("llama"), sampled()
    assert answers(model, given, 6, replays=True) == answers(model, given, 6)
    assert caplog.text.count("cannot be captured (operation not permitted") == 1


def test_the_longest_answers_outgrow_their_first_slots(graphs: StandInGraphs) -> None:
    """Slots are widened, and moved where few rows are left; graphs of the memory before are not replayed."""
    model = tiny.build("LlamaForCausalLM", max_position_embeddings=512)
    given = [GenerationRequest(str(i), (1 + i, 2, 3), 10 + 25 * i, stopping=FREE) for i in range(8)]
    assert answers(model, given, 5, replays=True) == answers(model, given, 5)
    assert len(graphs.captured) > 4


def test_the_check_decodes_by_the_same_steps(
    graphs: StandInGraphs, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny.build("LlamaForCausalLM", max_position_embeddings=512)
    assert decoding_fault(model, "cpu", replays=True) is None
    assert graphs.replayed >= 4
    monkeypatch.setattr(Slots, "move", lambda *_: None)
    monkeypatch.setattr(
        graphing, "capture", lambda compute: (lambda: None, compute())
    )  # a stale graph
    fault = decoding_fault(model, "cpu", replays=True)
    assert fault is not None
    assert "differ" in fault


def test_nan_names_the_prompt() -> None:
    model = tiny.build("LlamaForCausalLM")
    given = [replace(one, stopping=FREE) for one in asks(4)]
    texts = [
        *(one.tokens for one in given),
        *(one.tokens for one in answers(model, given, 3).values()),
    ]
    unused = min(set(range(tiny.VOCABULARY)) - {token for text in texts for token in text})
    model.model.embed_tokens.weight[unused] = float("nan")
    given.append(GenerationRequest("broken", (1, unused, 2, 3), 1, stopping=FREE))
    with pytest.raises(NonFiniteError, match="prompt broken: "):
        answers(model, given, 3, replays=True)


@pytest.mark.parametrize(("is_fused", "most"), [(True, 16), (False, 36)])
def test_launches_of_a_step(
    is_fused: bool, most: int, graphs: StandInGraphs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replay is one launch; without graphs, each operation that computes is one kernel of a GPU."""
    if not is_fused:
        monkeypatch.setattr(generating, "fused_layers", contextlib.nullcontext)
    model = tiny.model("llama")
    layers = model.config.num_hidden_layers
    deeper = tiny.build("LlamaForCausalLM", num_hidden_layers=layers + 1)
    given = [*asks(30), *few_shot(6, shared=40, samples=(0, 1))]
    for counted in (model, deeper):
        answers(counted, [replace(one, stopping=FREE) for one in given], 16, replays=True)
    counts = sorted({len(one.launches) for one in graphs.captured})
    assert len(counts) == 2  # whatever the numbers of rows and columns
    assert counts[1] - counts[0] == most  # of one layer more
