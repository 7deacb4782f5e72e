"""Results of a checkpoint that is gone are no output that anything removes, forced or not."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.histories.__main__ import Place
from tests.histories.beginning import beginning, build_pool
from tests.histories.model import Model
from tests.histories.runner import Done, server
from tests.histories.world import World, environment

GONE = ("two/5", "one/20")
"""A step of stage2, and one of stage1, which is stage2's bridge, too."""

FORCED: list[tuple[str, ...]] = [
    ("--forcerun", "score_stage1", "score_stage2", "score_stage2_bridge"),
    ("--forcerun", "collect_stage1", "collect_stage2"),
    ("--forceall",),
    ("--forceall", "--set-resources", "score_stage1:checkpoints=2", "score_stage2:checkpoints=2"),
]


NOTHING = "Nothing to be done"

PARTLY_GONE = "two/15"
"""A step of stage2 whose weights went before its configuration did."""


class Scored:
    """A world that was evaluated, then lost checkpoints."""

    def __init__(self, place: Place, folder: Path) -> None:
        self.warm, self.world = place.warm, World(folder / "world", place.pool)
        self.model: Model = beginning(place.pool)
        self.world.folder.mkdir()
        self.world.write(None, self.model)
        assert self.run().code == 0
        for name in GONE:
            shutil.rmtree(self.world.folder / "ckpts" / name)
        next((self.world.folder / "ckpts" / PARTLY_GONE).rglob("*.safetensors")).unlink()

    def run(self, *arguments: str) -> Done:
        extra = environment(self.world, self.model)
        return self.warm.snakemake(self.world.folder, *arguments, extra=extra)

    def shown(self) -> dict[str, set[str]]:
        """Steps and bridges in each stage's table."""
        found = {}
        for stage in self.model.stages:
            path = self.world.folder / self.model.results(stage) / "summary.parquet"
            rows = pq.read_table(path, columns=["role", "step"]).to_pylist()
            found[stage] = {f"{row['role']} {row['step']}" for row in rows}
        return found


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scored]:
    with server() as warm:
        folder = tmp_path_factory.mktemp("gone")
        yield Scored(Place(warm, folder, build_pool(folder / "made")), folder)


def test_a_forced_run_takes_nothing_away(scored: Scored) -> None:
    before = scored.shown()
    assert {"step 5", "step 15", "bridge 20"} <= before["stage2"]
    assert "step 20" in before["stage1"]
    for forced in FORCED:
        done = scored.run(*forced)
        assert (done.code, scored.shown()) == (0, before), f"{forced} {done.said}"
        assert NOTHING in scored.run("--dry-run").said, forced
    done = scored.run("--delete-all-output")
    assert done.code == 0, done.said
    done = scored.run()
    assert (done.code, scored.shown()) == (0, before), done.said
