"""The edges of the command line: streams, signals, a missing environment, what the system refuses."""

import argparse
import errno
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from evaluation.commands.parser import build_parser, parsers_of
from evaluation.exit_codes import exit_code, machine_fault
from tests.histories.warm import run_python, run_shell
from tests.tables import cases
from tests.workflow.paper import ROOT, Paper

PYTHON = sys.executable


COMMANDS = parsers_of(build_parser())


@pytest.fixture
def paper(tmp_path: Path) -> Paper:
    return Paper(tmp_path / "paper", {"one": {}, "two": {}})


@pytest.mark.parametrize(("line", "code", "said"), cases("command_lines", "streams"))
def test_streams(paper: Paper, line: str, code: int, said: str) -> None:
    line = line.replace("STATUS", "EVALUATION status --config config.yaml")
    line = line.replace("EVALUATION", "PYTHON -m evaluation").replace("PYTHON ", f"{PYTHON} ")
    done = run_shell(line, paper.folder, PYTHONUNBUFFERED="")
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert (done.stderr == "") == (said == "")
    for trace in ("Traceback", "Exception ignored", "BrokenPipe"):
        assert trace not in done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_empty_is_refused(command: str) -> None:
    """As of a variable that is not set: no option takes it for a path, or for nothing."""
    taken = [
        action.option_strings or action.dest
        for action in COMMANDS[command]._actions
        if action.nargs != 0 and action.dest != "snakemake" and not action.choices
        if not _refuses_empty(action)
    ]
    assert taken == []


def _refuses_empty(action: argparse.Action) -> bool:
    try:
        assert callable(action.type)
        action.type("")
    except (argparse.ArgumentTypeError, ValueError):
        return True
    return False


FULL = OSError(errno.ENOSPC, "No space left on device", "a/b")
DENIED = PermissionError(errno.EACCES, "Permission denied", "a/b")
FAULTS: list[tuple[OSError, str, list[str]]] = [
    (FULL, "score", ["a/b: No space", "free some disk space", "not scored again"]),
    (OSError(errno.ENOSPC, "No space left"), "tables", ["does not name: No space"]),
    (DENIED, "prefill", ["a/b: Permission denied", "permissions"]),
    (NotADirectoryError(errno.ENOTDIR, "Not a directory", "a/b"), "tables", ["a/b: Not a dir"]),
    (OSError(errno.ENOMEM, "Cannot allocate memory"), "tables", ["memory: this "]),
    (OSError("no\nnumber"), "score", ["no number", "-v"]),
]


@pytest.mark.parametrize(("error", "command", "words"), FAULTS, ids=str)
def test_what_the_system_refuses(error: OSError, command: str, words: list[str]) -> None:
    sentence = machine_fault(error, is_scoring=command == "score")
    assert "\n" not in sentence
    for word in words:
        assert word in sentence
    assert ("not scored again" in sentence) == (command == "score" and error.errno is not None)


def test_shared_memory_that_is_full_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    full = os.statvfs_result((4096, 4096, 1, 0, 0, 3, 0, 0, 0, 255))
    monkeypatch.setattr(os, "statvfs", {"/dev/shm": full}.__getitem__)
    told = machine_fault(OSError(errno.ENOSPC, "No space left on device"))
    assert told.startswith(
        "/dev/shm, through which processes of one machine share memory: No space"
    )
    named = machine_fault(OSError(errno.ENOSPC, "No space left on device", "a/b"))
    assert named.startswith("a/b: No space")


@pytest.mark.parametrize(
    ("module", "code", "said"),
    [
        ("resource", -signal.SIGINT, ""),
        ("pydantic", 130, "interrupted; run the same command again to go on\n"),
    ],
)
def test_ctrl_c_while_it_starts(paper: Paper, module: str, code: int, said: str) -> None:
    """`module` is imported as the command starts, and Ctrl-C comes just then."""
    pressed = paper.folder / "pressed"
    pressed.mkdir()
    (pressed / f"{module}.py").write_text(
        "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n"
    )
    done = subprocess.run(
        [PYTHON, "-m", "evaluation", "status", "--config", "config.yaml"],
        cwd=paper.folder,
        env={**os.environ, "PYTHONPATH": f"{pressed}:{ROOT}"},
        preexec_fn=partial(
            signal.signal, signal.SIGINT, signal.SIG_DFL
        ),  # a shell's `&` ignores it
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (code, said)


def test_too_little_memory_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    def fails() -> int:
        raise MemoryError

    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGALRM)}
    hook = sys.unraisablehook
    try:
        assert exit_code(fails, is_scoring=False) == 1
    finally:
        sys.unraisablehook = hook
        for number, handler in handlers.items():
            signal.signal(number, handler)
    assert capsys.readouterr().err.startswith("error: memory: ")


SWALLOWS = """
import os, signal, time
from evaluation.__main__ import main
from evaluation.reporting import status
class Swallowed:
    def __del__(self):  # what is raised here is dropped by Python
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.01)
def slow(*arguments):
    Swallowed()
    time.sleep(60)
status.stage_status = slow
main(["status", "--config", "config.yaml"])
"""


def test_sigterm_is_not_lost_where_exceptions_are_dropped(paper: Paper) -> None:
    begin = time.monotonic()
    done = run_python(["-c", SWALLOWS], paper.folder, cold=True)
    assert done.returncode == 128 + signal.SIGTERM, done.stderr
    assert time.monotonic() - begin < 30
    assert done.stderr == ""


@pytest.mark.parametrize(("line", "said"), cases("command_lines", "usage"))
def test_usage(capsys: pytest.CaptureFixture[str], line: str, said: str) -> None:
    with pytest.raises(SystemExit) as caught:
        build_parser().parse_args(line.split())
    assert caught.value.code == 2
    assert said in capsys.readouterr().err
