"""Killed at any moment and started again, a scoring job gives what an undisturbed one gives."""

import json
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.slurm.runs import ROOT, STEP, Run, Stored
from tests.workflow.world import World

KILLS = 50


class Scorer:
    """A scoring job of step 10 that can be killed, by way of a warm process."""

    def __init__(self, run: Run) -> None:
        self.line = f"score --config {run.folder}/config.yaml --stage stage1 --step {STEP}\n"
        self.server = subprocess.Popen(
            [sys.executable, "-m", "tests.slurm.fork_server"], cwd=ROOT, text=True, bufsize=1,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def start(self) -> int:
        assert self.server.stdin is not None
        self.server.stdin.write(self.line)
        return int(self._read())

    def ended(self, seconds: float) -> bool:
        """Whether the job ends by itself within a time."""
        return bool(select.select([self.server.stdout], [], [], seconds)[0])

    def code(self) -> int:
        return int(self._read())

    def _read(self) -> str:
        """The next number; the jobs print the folder of their results in between."""
        assert self.server.stdout is not None
        while not (line := self.server.stdout.readline().strip()).lstrip("-").isdigit():
            assert line, "the warm process has ended"
        return line


@pytest.fixture
def scorer(slow_world: World, tmp_path: Path) -> Iterator[tuple[Run, Scorer]]:
    run = Run(slow_world, tmp_path, tmp_path / "results")
    scorer = Scorer(run)
    with scorer.server:
        yield run, scorer
        scorer.server.kill()


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


def test_killed_at_random_moments(scorer: tuple[Run, Scorer]) -> None:
    run, job = scorer
    job.start()
    begin = time.monotonic()
    assert job.code() == 0
    lasts = time.monotonic() - begin
    expected = run.outcome()
    assert len(expected) == 4
    dice = random.Random(20)
    kills = finished = 0
    kept: Stored = {}
    shutil.rmtree(run.results)
    while kills < KILLS:
        pid = job.start()
        if not job.ended(dice.uniform(0.0, lasts)):
            os.kill(pid, signal.SIGKILL)
        killed = job.code() == -signal.SIGKILL
        now = run.stored()
        assert {name: now.get(name) for name in kept} == kept
        if killed:
            kills += 1
            kept = now
            assert_whole(run.results)
            continue
        finished += 1
        assert run.outcome() == expected
        shutil.rmtree(run.results)
        kept = {}
    job.start()
    assert job.code() == 0
    assert run.outcome() == expected
    print(f"{kills} kills, {finished + 1} runs to the end, {lasts:.1f} s undisturbed")
