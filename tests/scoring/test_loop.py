"""The one loop: killed at any moment and shared among jobs, it scores each row once and loses none."""

import contextlib
import random
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
import torch

from evaluation.checkpoints.format import Checkpoint
from evaluation.errors import NotEnoughMemory
from evaluation.scoring.engine.backend import EngineBackend
from evaluation.scoring.loop import ALL, Part, ScoredItem, Share, Wanted, in_parts, score_lacking
from evaluation.scoring.session import Job
from evaluation.settings.computing import Scoring
from evaluation.store import Rows, ScoreStore

KEYS = {"one": [str(n) for n in range(40)], "two": [str(n) for n in range(23)]}
SHARES = [Share(number, 8) for number in range(1, 9)]


class Killed(BaseException):
    """A job that is killed runs nothing more."""


class World:
    """A checkpoint's store, and how often each row was scored and stored."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.scored, self.in_flight = folder, Counter[tuple[str, str]](), 0
        self.backend = EngineBackend(Scoring(device="cpu"), cast(Checkpoint, None), lambda: None)
        self.enough = 10**9
        """Tokens of a pass for which there is memory."""

    def job(self, share: Share = ALL, moments: int = 10**9) -> ScoreStore:
        """Score what lacks; the job is killed after so many moments."""
        store, left = ScoreStore(self.folder, "checkpoint"), iter(range(moments))
        backend = self.backend

        def score(job: Job, wanted: Wanted) -> Iterator[list[Part]]:
            yield []
            for item, keys in wanted.items():
                for number, part in enumerate(
                    in_parts(keys, [10 * backend.row_tokens] * len(keys), job)
                ):
                    if next(left, None) is None:
                        raise Killed
                    if number and backend.row_tokens > self.enough:
                        raise torch.OutOfMemoryError("CUDA out of memory")
                    self.in_flight = len(part)
                    self.scored.update((item.name, key) for key in part)
                    if next(left, None) is None:
                        raise Killed
                    yield [Part(item, pa.table({"key": part, "value": [1.0] * len(part)}), 10)]

        items = [
            ScoredItem(name, Rows(store, name, {"item": name}), keys, score)
            for name, keys in KEYS.items()
        ]
        job = SimpleNamespace(backend=backend, cost=lambda seconds, tokens: {"seconds": seconds})
        backend.within_memory(partial(score_lacking, cast(Job, job), items, share))
        store.pack()
        return store

    def stored(self) -> Counter[tuple[str, str]]:
        store = ScoreStore(self.folder, "checkpoint")
        parts: dict[str, Any] = {name: store.read(name) for name in store.names()}
        return Counter(
            (name.partition("-")[0], key)
            for name, part in parts.items()
            for key in part.table["key"].to_pylist()
        )


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


EVERY = {(name, key) for name, keys in KEYS.items() for key in keys}


def test_a_job_killed_at_ten_moments_scores_again_only_the_part_in_flight(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """The last one says what its rows cost."""
    dice, again = random.Random(3), 0
    for _ in range(10):
        before = world.stored()
        with pytest.raises(Killed):
            world.job(moments=dice.randrange(5))
        assert before <= world.stored()
        again += world.in_flight
    left = len(EVERY) - world.stored().total()
    with caplog.at_level("INFO"):
        world.job()
    assert f"scored {left} rows: " in caplog.messages[-1]
    assert world.stored() == Counter(EVERY)
    assert world.scored.keys() == EVERY
    assert world.scored.total() - len(EVERY) <= again


def test_eight_jobs_share_a_checkpoint_and_one_is_killed(world: World) -> None:
    for share in SHARES:
        try:
            world.job(share, moments=2 if share.number == 3 else 10**9)
        except Killed:
            assert share.number == 3
    assert world.scored.total() < len(EVERY)
    assert world.stored() == Counter(world.scored.keys())
    store = world.job()
    assert world.stored() == Counter(EVERY)
    assert set(world.scored.values()) == {1}
    assert [*store.folder.glob("*.parquet")] == []


@pytest.mark.parametrize("enough", [300, 0])
def test_without_memory_passes_are_halved_and_nothing_is_scored_twice(
    world: World, enough: int
) -> None:
    world.enough = enough
    with pytest.raises(NotEnoughMemory):  # of the model itself
        world.job()
    assert world.backend.row_tokens == 1024
    world.backend.__dict__["engine"] = SimpleNamespace(row_tokens=1024)
    with contextlib.nullcontext() if enough else pytest.raises(NotEnoughMemory):
        world.job()
    assert world.backend.row_tokens == world.backend.engine.row_tokens == 256
    assert world.stored() == Counter(world.scored)
    assert (world.stored() == Counter(EVERY)) == (enough > 0)


def test_shares_hold_each_key_once_and_about_equally() -> None:
    keys = [f"key {n}" for n in range(4000)]
    counts = [sum(share.has(key) for key in keys) for share in SHARES]
    assert sum(counts) == len(keys)
    assert max(counts) < 1.3 * min(counts)
