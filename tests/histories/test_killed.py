"""Scoring, generation and verification killed at many moments each give what an undisturbed run gives."""

import json
import os
import random
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from evaluation.checkpoints.subjects import step_subject
from evaluation.flow.targets import Targets
from evaluation.records import read_record
from evaluation.store import ScoreStore
from tests.histories.oracle import differences_of
from tests.histories.runner import Done, Server, server
from tests.slurm.runs import make_scoring_slow
from tests.tables import EVERYTHING
from tests.workflow.world import ANSWERED, LAST_LETTER, World, build_world, stored_scores

KILLS = int(os.environ.get("KILLED_MOMENTS", "20" if EVERYTHING else "10"))
TASK = {
    **ANSWERED,
    "max_new_tokens": 8,
    "sampling": {"temperature": 1.0, "n": 16, "seed": 3},
    "verifiers": {"lenient": LAST_LETTER},
}


class Stage:
    """A stage of eight slices and many answers, run in forks of a warm process, with the real engine."""

    def __init__(self, warm: Server, world: World) -> None:
        self.warm, self.world = warm, world
        self.results = world.results()
        self.folder = world.results("stage1", "by_checkpoint", "step_10")

    def run(self, command: str, killed_after: float | None = None) -> Done:
        extra = {"EVALUATION_CONFIG": str(self.world.config), "HISTORIES_REAL": "1"}
        words = ["-m", "evaluation", *command.split(), "--stage", "stage1", "--step", "10"]
        done = self.warm.run(self.world.folder, words, extra, killed_after=killed_after)
        assert done.code == 0 or (done.code == -9 and killed_after is not None), done.said
        return done

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
    world.change_suite("base", generation_tasks={"sums": TASK})
    make_scoring_slow(world)
    with server() as warm:
        yield Stage(warm, world)


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


def stored_items(results: Path) -> dict[str, str]:
    """All but answers, whose parts are put together."""
    found = stored_scores(results)
    return {name: one for name, one in found.items() if "/completions-" not in name}


def test_scoring(stage: Stage, tmp_path: Path) -> None:
    """At random moments: what is stored stays, and what is seen is whole."""
    dice, undisturbed = random.Random(20), stage.run("score")
    expected, answers = shutil.copytree(stage.folder, tmp_path / "expected"), stage.completions()
    assert len(answers) == 24 * 16
    kills, kept, seen = 0, dict[str, str](), 0
    shutil.rmtree(stage.results)
    while kills < KILLS:
        done = stage.run("score", killed_after=dice.uniform(0, undisturbed.seconds))
        now = stored_items(stage.results)
        assert {name: now.get(name) for name in kept} == kept
        if done.code:
            kills, kept, seen = kills + 1, now, seen + bool(now)
            assert_whole(stage.results)
            continue
        assert stage.completions() == answers
        assert list(differences_of(stage.folder, expected)) == []
        shutil.rmtree(stage.results)
        kept = {}
    assert seen > 0
    stage.run("score")
    assert stage.completions() == answers
    assert list(differences_of(stage.folder, expected)) == []


def test_verification(stage: Stage, tmp_path: Path) -> None:
    """The same of verdicts and tier files, from one store of scores."""
    planned = Targets().score(step_subject(stage.world.plans["stage1"], 10)).name
    stage.run(f"score --planned {planned}")  # without the tier files
    scored = shutil.copytree(stage.results, tmp_path / "scored")
    undisturbed, dice, killed = stage.run("collect"), random.Random(21), 0
    expected = shutil.copytree(stage.folder, tmp_path / "expected")
    for _ in range(KILLS):
        shutil.rmtree(stage.results)
        shutil.copytree(scored, stage.results)
        moment = dice.uniform(0, undisturbed.seconds)
        killed += stage.run("collect", killed_after=moment).code == -9
        stage.run("collect")
        assert list(differences_of(stage.folder, expected)) == []
    assert killed > KILLS / 3
