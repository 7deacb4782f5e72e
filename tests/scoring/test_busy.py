"""How long the device had work, by stand-ins for a GPU's clock."""

from collections.abc import Callable
from typing import Any, TypeVar

import pytest
import torch

from evaluation.grading.header import _busy
from evaluation.scoring.engine import busy
from evaluation.scoring.engine.busy import Busy
from tests.scoring import tiny

T = TypeVar("T")


class Event:
    """Of a GPU that begins each pass when the last has ended, and takes 2 s for it."""

    clock = 0.0
    waited = 0

    def __init__(self, enable_timing: bool) -> None:
        assert enable_timing

    def record(self) -> None:
        self.at = Event.clock

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        Event.waited += 1

    def elapsed_time(self, other: "Event") -> float:
        return (other.at - self.at) * 1000


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> type[Event]:
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "Event", Event)
    Event.waited = 0
    return Event


def one_pass() -> str:
    Event.clock += 2.0
    return "done"


def test_passes_of_a_gpu_are_added_up(gpu: type[Event]) -> None:
    counted = Busy()
    for _ in range(300):
        assert counted.during(one_pass) == "done"
        gpu.clock += 1.0  # nothing to do
    assert gpu.waited == 0
    assert counted.seconds() == pytest.approx(600.0)
    assert counted.seconds() == pytest.approx(600.0)


def test_a_dead_gpu_does_not_hide_what_was_before(gpu: type[Event], monkeypatch: Any) -> None:
    counted = Busy()
    counted.during(one_pass)
    assert counted.seconds() == pytest.approx(2.0)
    counted.during(one_pass)

    def dead(_: Event) -> None:
        raise RuntimeError("CUDA error: unspecified launch failure")

    monkeypatch.setattr(Event, "synchronize", dead)
    assert counted.seconds() == pytest.approx(2.0)


class Counting(Busy):
    def __init__(self) -> None:
        super().__init__()
        self.passes = 0
        self.within = 0

    def during(self, call: Callable[[], T]) -> T:
        assert not self.within, "a pass within a pass would count twice"
        self.passes, self.within = self.passes + 1, 1
        try:
            return super().during(call)
        finally:
            self.within = 0


def test_passes_of_the_engine_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = tiny.engine()  # checks itself by a pass of its own
    monkeypatch.setattr(busy, "BUSY", counted := Counting())
    tiny.Backend(engine).block_nats(torch.randint(0, 40, (8, 32)), None, label="blocks")
    assert counted.passes == 8 * 32 // engine.row_tokens


SUMMARIES: list[tuple[str, list[dict[str, Any]], dict[str, float]]] = [
    ("a CPU", [{"seconds": 2.0}], {}),
    ("half", [{"seconds": 2.0, "busy_seconds": 1.0}], {"gpu_busy": 0.5}),
    ("some older", [{"seconds": 9.0}, {"seconds": 4.0, "busy_seconds": 3.0}], {"gpu_busy": 0.75}),
    ("no time", [{"seconds": 0.0, "busy_seconds": 0.0}], {}),
    ("another clock", [{"seconds": 1.0, "busy_seconds": 1.01}], {"gpu_busy": 1.0}),
]


@pytest.mark.parametrize(
    ("summaries", "expected"), [one[1:] for one in SUMMARIES], ids=[one[0] for one in SUMMARIES]
)
def test_share_in_a_tier_file(summaries: list[dict[str, Any]], expected: dict[str, float]) -> None:
    assert _busy(summaries) == expected
