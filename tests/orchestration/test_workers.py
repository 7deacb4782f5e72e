"""How a job deals out GPUs and steps."""

import random
from types import SimpleNamespace
from typing import Any

import pytest

from evaluation.orchestration.workers import Queue, gpus_to_use


def plan(device: str = "auto") -> Any:
    return SimpleNamespace(config=SimpleNamespace(scoring=SimpleNamespace(device=device)))


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        ("0,1,2,3", ["0", "1", "2", "3"]),
        ("1,GPU-a,1", ["1", "GPU-a"]),
        (" 0 , 1 ,-1,2", ["0", "1"]),
        ("", [None]),
        ("-1", [None]),
        ("NoDevFiles", [None]),
    ],
)
def test_gpus_are_dealt_out(
    visible: str, expected: list[str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert gpus_to_use(plan()) == expected
    assert gpus_to_use(plan("cpu")) == [None]


def test_each_process_has_another_step_in_view() -> None:
    todo = Queue([1, 2, 3, 4, 5])
    assert todo.next(0) == (1, 2)
    assert todo.next(1) == (3, 4)
    assert todo.next(1) == (4, 5)
    assert todo.next(0) == (2, None)


def test_a_free_process_takes_what_another_has_in_view() -> None:
    """At the end no GPU is idle because another has prefetched the last step."""
    todo = Queue([1, 2, 0])
    assert todo.next(0) == (1, 2)
    assert todo.next(1) == (0, None)
    assert todo.next(1) == (2, None)
    assert todo.next(0) == (None, None)


@pytest.mark.parametrize("seed", range(20))
def test_every_step_is_done_once(seed: int) -> None:
    chance = random.Random(seed)
    steps = chance.sample(range(50), chance.randint(1, 30))
    todo, done = Queue(steps), []
    while (step := todo.next(chance.randrange(4))[0]) is not None:
        done.append(step)
    assert sorted(done) == sorted(steps)
    assert all(todo.next(process) == (None, None) for process in range(4))
