"""What a job asks for where a checkpoint is spread over several GPUs, and how it deals out GPUs and steps."""

import random
from types import SimpleNamespace
from typing import Any

import pytest

from evaluation.errors import ConfigError
from evaluation.orchestration.score_rules import for_spread_model
from evaluation.orchestration.workers import Queue, gpus_to_use

ALL = {"cpus_per_task": 8, "mem_mb": 1000}
CASES: list[tuple[str, dict[str, Any], dict[str, Any], int, dict[str, Any]]] = [
    ("one", {**ALL, "gres": "gpu:1"}, {}, 1, {}),
    (
        "gres",
        {**ALL, "gres": "gpu:1", "runtime": "60 * attempt"},
        {},
        4,
        {"cpus_per_task": 32, "mem_mb": 4000, "gres": "gpu:4", "tasks_per_gpu": 0},
    ),
    ("typed", {"gres": "gpu:a100:1"}, {}, 2, {"gres": "gpu:a100:2", "tasks_per_gpu": 0}),
    ("without a number", {"gres": "gpu"}, {}, 2, {"gres": "gpu:2", "tasks_per_gpu": 0}),
    ("gpu", {"gpu": 1}, {}, 3, {"gpu": 3, "tasks_per_gpu": 0}),
    ("none", {"gpu": 0, "gres": ""}, {}, 3, {}),
    ("other gres", {"gres": "tmpfs:100G"}, {}, 3, {}),
    ("an expression", {"mem_mb": "1000 * attempt"}, {}, 3, {}),
    ("set for the rule", {**ALL, "gpu": 1}, {"mem_mb": 5, "gpu": 2}, 2, {"cpus_per_task": 16, "tasks_per_gpu": 0}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("defaults", "own", "gpus", "expected"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
def test_so_many_times_what_one_gpu_gets(
    defaults: dict[str, Any], own: dict[str, Any], gpus: int, expected: dict[str, Any]
) -> None:
    assert for_spread_model(defaults, own, gpus) == expected


def plan(size: int, device: str = "auto", processes: int = 1) -> Any:
    scoring = SimpleNamespace(device=device, gpus_per_checkpoint=size)
    return SimpleNamespace(config=SimpleNamespace(scoring=scoring), gpus=size * processes)


DEALT = [
    ("0,1,2,3", 1, ["0", "1", "2", "3"]),
    ("0,1,2,3", 2, ["0,1", "2,3"]),
    ("0,1,2,3", 3, ["0,1,2"]),
    ("GPU-a,MIG-b", 2, ["GPU-a,MIG-b"]),
    ("", 2, [None]),
    ("-1", 1, [None]),
    ("NoDevFiles", 2, [None]),
    (" 0 , 1 ,-1,2", 1, ["0", "1"]),
]


@pytest.mark.parametrize(("visible", "size", "expected"), DEALT)
def test_gpus_are_dealt_out(
    visible: str, size: int, expected: list[str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert gpus_to_use(plan(size)) == expected
    assert gpus_to_use(plan(size, "cpu")) == [None]


def test_a_checkpoint_has_the_gpus_of_all_its_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3,4")
    assert gpus_to_use(plan(1, processes=2)) == ["0,1", "2,3"]
    assert gpus_to_use(plan(2, processes=4)) == ["0,1,2,3,4"]


def test_too_few_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    with pytest.raises(ConfigError, match="4, but the job sees 2 GPUs; ask for as many"):
        gpus_to_use(plan(4))


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
