"""The watcher beside a writer, and beside everything that may go wrong."""

import os
import socket
import threading
import time

import pytest

from evaluation.errors import CacheError
from evaluation.orchestration.processes import Process
from evaluation.watching import attempts, watch
from tests.watching.conftest import Watched, held_by
from tests.watching.trainer import train

LONG = 0.8
"""Seconds that the writer pauses half-way: longer than a checkpoint has to be quiet."""


def test_beside_a_writer(watched: Watched, capsys: pytest.CaptureFixture[str]) -> None:
    """Every complete checkpoint is scored once, no incomplete one ever."""
    trainer = threading.Thread(target=train, args=(watched.whole, watched.checkpoints, LONG))
    trainer.start()
    code = watched.watcher(until_step=30, give_up=120.0).watch()
    trainer.join()
    watched.watcher(once=True).watch()
    assert watched.scored() == ["10 whole", "20 whole", "30 whole"]
    said = capsys.readouterr().out
    assert code == 0, said
    assert said.count("evaluated\n") == 3
    assert "step 30 is evaluated: the end" in said
    assert "stage1 step 40: skipped: " in said


def test_only_the_steps_of_a_list(watched: Watched, capsys: pytest.CaptureFixture[str]) -> None:
    """And with all of them evaluated there is nothing to wait for."""
    content = watched.world.config.read_text().replace("steps: all", "steps: [20, 30]")
    watched.world.config.write_text(content)
    for step in (10, 20):
        watched.copy(step)
    assert watched.watcher(once=True).watch() == 0
    assert watched.scored() == ["20 whole"]
    watched.copy(30)
    assert watched.watcher().watch() == 0
    assert watched.scored() == ["20 whole", "30 whole"]
    assert "all requested steps are evaluated: the end" in capsys.readouterr().out


def test_what_failed_is_tried_again_when_it_changes(
    watched: Watched, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = watched.copy(10)
    (watched.play / "break_10").touch()
    assert watched.watcher(once=True).watch() == 1
    line = "stage1 step 10: failed: NaN; tried again when it changes, or in 15 min"
    assert line in capsys.readouterr().out
    assert watched.watcher(once=True).watch() == 0
    assert len(watched.scored()) == 1
    (watched.play / "break_10").unlink()
    (copy / "config.yaml").touch()
    assert watched.watcher(once=True).watch() == 0
    assert len(watched.scored()) == 2
    assert attempts.read_failures(watched.world.results("stage1")) == {}


def test_a_full_queue_is_tried_again_later(
    watched: Watched, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    watched.copy(10)
    (watched.play / "queue").touch()
    assert watched.watcher(once=True).watch() == 1
    said = capsys.readouterr().out
    assert "step 10: failed: WorkflowError: SLURM job submission failed" in said
    assert "tried again in 1 min" in said
    (watched.play / "queue").unlink()
    assert watched.watcher(once=True).watch() == 0
    assert watched.scored() == []
    now = time.time()
    monkeypatch.setattr(attempts.time, "time", lambda: now + 61)
    assert watched.watcher(once=True).watch() == 0
    assert watched.scored() == ["10 whole"]


def test_another_snakemake_is_waited_for(
    watched: Watched, capsys: pytest.CaptureFixture[str]
) -> None:
    watched.copy(10)
    (watched.play / "refuse").touch()
    assert watched.watcher(once=True).watch() == 0
    assert "another Snakemake is working on these files" in capsys.readouterr().out
    (watched.play / "refuse").unlink()
    assert watched.watcher(once=True).watch() == 0
    assert watched.scored() == ["10 whole"]


def test_the_lock_of_a_killed_snakemake_is_removed(watched: Watched) -> None:
    """Of that which a killed watcher had started, and of no other."""
    watched.copy(10)
    (watched.play / "refuse").touch()
    dead = Process(socket.gethostname(), os.getpid(), "0")
    held_by(watched.world.results("stage1"), dead, dead)
    assert watched.watcher(until_step=10).watch() == 0
    assert watched.scored() == ["10 whole"]


def test_two_watchers_of_one_stage(watched: Watched, capsys: pytest.CaptureFixture[str]) -> None:
    """The second leaves all to the first, and goes on when that has ended."""
    watched.copy(10)
    other = held_by(watched.world.results("stage1"), Process("elsewhere", 1, "1"))
    assert watched.watcher(once=True).watch() == 0
    assert "stage1: watched by process 1 on elsewhere, so left to it" in capsys.readouterr().out
    other.unlink()
    assert watched.watcher(once=True).watch() == 0
    assert watched.scored() == ["10 whole"]


def test_it_gives_up(watched: Watched, capsys: pytest.CaptureFixture[str]) -> None:
    watched.copy(10)
    assert watched.watcher(give_up=0.0).watch() == 0
    assert capsys.readouterr().out.endswith("s: the end\n")
    assert watched.scored() == ["10 whole"]


def test_what_is_not_prefilled_is_said_before_anything(watched: Watched) -> None:
    watched.copy(10)
    text = watched.world.config.read_text().replace("sequence_length: 64", "sequence_length: 32")
    watched.world.config.write_text(text)
    with pytest.raises(CacheError, match=r"not prefilled.*snakemake prefill"):
        watched.watcher().watch()
    assert watched.scored() == []


def test_it_does_not_end_before_every_page_shows_what_there_is(
    watched: Watched, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With all evaluated and a page that cannot be made it goes on trying."""
    watched.copy(10)
    late = iter(([("", "no report")], [("", "no report")], []))
    monkeypatch.setattr(watch, "make_pages", lambda *_: next(late))
    assert watched.watcher(until_step=10).watch() == 0
    said = capsys.readouterr().out
    assert "watching stage1: a check every 0.1 s" in said.splitlines()[0]
    assert "step 10 is evaluated: the end" in said.splitlines()[-1]
    assert list(late) == []
    monkeypatch.setattr(watch, "make_pages", lambda *_: [("", "no report")])
    assert watched.watcher(once=True).watch() == 1
    assert watched.watcher(until_step=10, give_up=0.0).watch() == 1
