"""Scoring, generation and verification killed at many moments each give what an undisturbed run gives."""

import json
import os
import random
import shutil
import signal
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from evaluation.records import read_record
from evaluation.store import ScoreStore
from tests.histories.oracle import differences_of
from tests.histories.runner import Done, Server, server
from tests.histories.warm import warm_server
from tests.slurm.runs import make_scoring_slow
from tests.workflow.world import ANSWERED, LAST_LETTER, World, build_world, stored_scores

MOMENTS = int(os.environ.get("KILLED_MOMENTS", "10"))
TASK = {
    **ANSWERED,
    "max_new_tokens": 8,
    "sampling": {"temperature": 1.0, "n": 16, "seed": 3},
    "verifiers": {"lenient": LAST_LETTER},
}


class Stage:
    """A prefilled stage whose commands run in forks of a warm process, with the real engine."""

    def __init__(self, warm: Server, world: World) -> None:
        self.warm, self.world = warm, world
        self.folder = world.results("stage2", "by_checkpoint", "step_5")

    def run(self, command: str, *more: str, killed_after: float | None = None) -> Done:
        extra = {"EVALUATION_CONFIG": str(self.world.config), "HISTORIES_REAL": "1"}
        words = ["-m", "evaluation", *command.split(), "--stage", "stage2", *more]
        return self.warm.run(self.world.folder, words, extra, killed_after=killed_after)

    def score(self, killed_after: float | None = None) -> Done:
        return self.run("score --scores-only", "--step", "5", killed_after=killed_after)

    def collect(self, killed_after: float | None = None) -> Done:
        return self.run("collect", "--step", "5", killed_after=killed_after)

    def completions(self) -> dict[str, Any]:
        """What is stored of answers, by key; of a key that is stored twice, both must agree."""
        record = read_record(self.folder, "score")
        identities = {record.about["identity"]} if record else set()
        store = ScoreStore(self.world.results("scores"), *identities)
        names = [name for name in store.names() if name.startswith("completions-sums-")]
        rows = [row for one in map(store.read, names) if one for row in one.table.to_pylist()]
        found = {row["key"]: row for row in rows}
        assert [row for row in rows if row != found[row["key"]]] == []
        return found


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    world = build_world(tmp_path_factory.mktemp("killed") / "world")
    world.change(verification={"workers": 1})
    suite = {"extends": "base", "generation_tasks": {"sums": TASK}}
    (world.folder / "suites" / "sft.yaml").write_text(yaml.safe_dump(suite))
    with server() as warm:
        stage = Stage(warm, world)
        done = stage.run("prefill")
        assert done.code == 0, done.said
        yield stage


class Moments:
    """When to kill: evenly over the time that a run takes, as it turned out last.

    The machine may be busier at first than later; a run that ends before it is killed tells.
    """

    def __init__(self, undisturbed: Done) -> None:
        self._seconds = undisturbed.seconds
        self.killed = 0

    def __iter__(self) -> Iterator[float]:
        for number in range(MOMENTS):
            yield self._seconds * (number + 0.5) / MOMENTS

    def saw(self, done: Done) -> None:
        if done.code == -9:
            self.killed += 1
        else:
            self._seconds = done.seconds


def test_generation(stage: Stage, tmp_path: Path) -> None:
    undisturbed = stage.score()
    assert undisturbed.code == 0, undisturbed.said
    expected = stage.completions()
    assert len(expected) == 24 * 16
    kept = 0
    moments = Moments(undisturbed)
    for moment in moments:
        shutil.rmtree(stage.world.results())
        moments.saw(stage.score(killed_after=moment))
        kept += any(stage.world.results().glob("scores/*/*"))
        done = stage.score()
        assert done.code == 0, done.said
        assert stage.completions() == expected
    assert moments.killed > MOMENTS / 2
    assert kept > 0


def test_verification(stage: Stage, tmp_path: Path) -> None:
    assert stage.score().code == 0
    scored = tmp_path / "scored"
    shutil.copytree(stage.world.results(), scored)
    undisturbed = stage.collect()
    assert undisturbed.code == 0, undisturbed.said
    expected = tmp_path / "expected"
    shutil.copytree(stage.folder, expected)
    moments = Moments(undisturbed)
    for moment in moments:
        shutil.rmtree(stage.world.results())
        shutil.copytree(scored, stage.world.results())
        moments.saw(stage.collect(killed_after=moment))
        done = stage.collect()
        assert done.code == 0, done.said
        assert list(differences_of(stage.folder, expected)) == []
    assert moments.killed > MOMENTS / 2


KILLS = 50


def assert_whole(results: Path) -> None:
    """Every file that is to be seen can be read."""
    for path in results.rglob("*"):
        if path.suffix == ".json":
            json.loads(path.read_text())
        elif path.suffix == ".parquet":
            pq.read_table(path)
        elif path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive:
                assert archive.testzip() is None


def test_scoring_at_random_moments(tmp_path: Path) -> None:
    """Eight slices: what is stored stays, and what is seen is whole."""
    world, dice = build_world(tmp_path / "world"), random.Random(20)
    make_scoring_slow(world)
    words = ["-m", "evaluation", *"score --config config.yaml --stage stage1 --step 10".split()]

    def score(killed_after: float | None = None) -> Done:
        return warm_server().run(world.folder, words, killed_after=killed_after)

    undisturbed, folder = score(), world.results("stage1/by_checkpoint/step_10")
    assert undisturbed.code == 0, undisturbed.said
    expected = shutil.copytree(folder, tmp_path / "expected")
    kills, kept = 0, dict[str, str]()
    shutil.rmtree(world.results())
    while kills < KILLS:
        done = score(killed_after=dice.uniform(0, undisturbed.seconds))
        now = stored_scores(world.results())
        assert {name: now.get(name) for name in kept} == kept
        if done.code == -signal.SIGKILL:
            kills, kept = kills + 1, now
            assert_whole(world.results())
            continue
        assert done.code == 0, done.said
        assert list(differences_of(folder, expected)) == []
        shutil.rmtree(world.results())
        kept = {}
    assert score().code == 0
    assert list(differences_of(folder, expected)) == []
