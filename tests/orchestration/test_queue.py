"""Which process of a job gets which step, and which it may prefetch."""

import random

import pytest

from evaluation.orchestration.workers import Queue


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
