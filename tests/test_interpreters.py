"""Programs run by another Python: what they print is bounded, and none of them is left."""

import contextlib
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from evaluation.interpreters import ProgramEnd, PythonProgram


def program(folder: Path, script: str) -> PythonProgram:
    python = folder / "python"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    (folder / "work").mkdir()
    return PythonProgram(python, "none", (), folder / "work", {})


def test_last_words_of_one_that_prints_without_end(tmp_path: Path) -> None:
    looks = iter(range(5))
    ended = program(tmp_path, "exec yes 0123456789").run(lambda: next(looks, None) is not None)
    assert ended.code is None
    assert ended.last_line in "0123456789"
    assert list((tmp_path / "work").iterdir()) == []


@pytest.mark.parametrize(
    ("script", "ended"),
    [
        ("echo one; echo two >&2; echo; exit 3", ProgramEnd(3, "two")),
        ("true", ProgramEnd(0, "")),
        ("printf '\\377 {'", ProgramEnd(0, "\ufffd {")),
        ("head -c 100000 /dev/zero | tr '\\0' x", ProgramEnd(0, "x" * 300)),
        ("head -c 100000 /dev/zero; echo; echo end", ProgramEnd(0, "end")),
    ],
)
def test_last_words(tmp_path: Path, script: str, ended: ProgramEnd) -> None:
    assert program(tmp_path, script).run(lambda: True) == ended


def test_one_whose_own_program_outlives_it_is_not_waited_for(tmp_path: Path) -> None:
    script = "setsid sh -c 'echo $$ > number; exec sleep 600' & while [ ! -s number ]; do :; done; echo bye"
    assert program(tmp_path, script).run(lambda: True) == ProgramEnd(0, "bye")
    os.kill(int((tmp_path / "work/number").read_text()), 9)


def test_it_ends_with_whoever_runs_it(tmp_path: Path) -> None:
    """Though it knows nothing of its parent, which is killed before it can end anything."""
    made = program(tmp_path, "echo $$ > number.tmp; mv number.tmp number; exec sleep 600")
    parent = (
        "from pathlib import Path; from evaluation.interpreters import PythonProgram; import sys;"
        "PythonProgram(Path(sys.argv[1]), 'none', (), Path(sys.argv[2]), {}).run(lambda: True)"
    )
    command = [sys.executable, "-c", parent, str(made.python), str(made.folder)]
    with subprocess.Popen(command) as asker:
        while not (number := made.folder / "number").exists():
            assert asker.poll() is None
        child = os.pidfd_open(int(number.read_text()))
        asker.kill()
    try:
        assert select.select([child], [], [], 30)[0], "it outlived its parent"
    finally:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(child, signal.SIGKILL)
        os.close(child)
