"""Who watches a stage: one process, and another only when that one is gone."""

import os
import socket
from pathlib import Path

import pytest

from evaluation.orchestration.processes import Process, process
from evaluation.watching import lock as module
from evaluation.watching.lock import Holder, StageLock
from tests.watching.conftest import held_by

ELSEWHERE = Process("elsewhere", 1, "1")
DEAD = Process(socket.gethostname(), os.getpid(), "0")
"""Its number belongs to a process that was started later."""


def test_it_is_kept_and_given_back(tmp_path: Path) -> None:
    lock = StageLock(tmp_path)
    assert lock.take() is None
    assert lock.take() is None
    lock.note_child(os.getpid())
    assert StageLock(tmp_path).take() is None  # the same process
    lock.release()
    assert list(lock.path.parent.iterdir()) == []


def test_a_process_that_is_gone_is_succeeded(tmp_path: Path) -> None:
    held_by(tmp_path, DEAD, ELSEWHERE)
    lock = StageLock(tmp_path)
    assert lock.take() is None
    assert lock.previous == Holder(DEAD, ELSEWHERE)
    assert lock.take() is None


def test_one_that_lives_is_not(tmp_path: Path) -> None:
    held_by(tmp_path, process(os.getppid()))
    lock = StageLock(tmp_path)
    holder = lock.take()
    assert holder is not None
    assert str(holder) == f"process {os.getppid()} on {socket.gethostname()}"
    lock.release()
    assert lock.path.exists()


def test_another_host_has_an_hour(tmp_path: Path) -> None:
    path = held_by(tmp_path, ELSEWHERE)
    lock = StageLock(tmp_path)
    assert lock.take() == Holder(ELSEWHERE)
    status = path.stat()
    os.utime(path, (status.st_atime, status.st_mtime - module.ABANDONED - 60))
    assert lock.take() is None
    assert lock.previous == Holder(ELSEWHERE)


@pytest.mark.parametrize("content", ["", "{}", "[]", "{"])
def test_a_lock_that_is_not_whole_binds_nobody(tmp_path: Path, content: str) -> None:
    lock = StageLock(tmp_path)
    lock.path.parent.mkdir()
    lock.path.write_text(content)
    assert lock.take() is None
