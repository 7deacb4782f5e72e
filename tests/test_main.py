"""The edges of the command line: streams, signals, a missing environment, what the system refuses."""

import argparse
import contextlib
import errno
import io
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from evaluation.commands.parser import build_parser, parsers_of
from evaluation.exit_codes import _without_errors, exit_code, machine_fault
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
    for action in COMMANDS[command]._actions:
        if action.nargs != 0 and action.dest != "snakemake" and not action.choices:
            with pytest.raises((argparse.ArgumentTypeError, ValueError)):
                action.type("")


FAULTS: list[tuple[int | None, str, str, list[str]]] = [
    (errno.ENOSPC, "No space left", "a/b", ["a/b: No space", "free some disk space"]),
    (errno.ENOSPC, "No space left", "", ["does not name: No space"]),
    (errno.EACCES, "Permission denied", "a/b", ["a/b: Permission denied", "permissions"]),
    (errno.ENOTDIR, "Not a directory", "a/b", ["a/b: Not a dir"]),
    (errno.ENOMEM, "Cannot allocate memory", "", ["memory: this "]),
    (None, "no\nnumber", "", ["no number", "-v"]),
]


@pytest.mark.parametrize(("number", "reason", "file", "words"), FAULTS)
def test_what_the_system_refuses(
    number: int | None, reason: str, file: str, words: list[str]
) -> None:
    error = OSError(reason) if number is None else OSError(number, reason, file or None)
    for is_scoring in (False, True):
        sentence = machine_fault(error, is_scoring=is_scoring)
        assert "\n" not in sentence
        for word in words:
            assert word in sentence
        is_by_item = is_scoring and number not in (None, errno.ENOMEM)
        assert ("not scored again" in sentence) == is_by_item


def test_shared_memory_that_is_full_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    full = os.statvfs_result((4096, 4096, 1, 0, 0, 3, 0, 0, 0, 255))
    monkeypatch.setattr(os, "statvfs", {"/dev/shm": full}.__getitem__)
    for names, begin in ((["a/b"], "a/b: No space"), ([], "/dev/shm, through which processes of")):
        error = OSError(errno.ENOSPC, "No space left on device", *names)
        assert machine_fault(error).startswith(begin)


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
    (pressed / f"{module}.py").write_text("import os; os.kill(os.getpid(), 2)")
    handled = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's `&` ignores it
    try:
        line = f"exec {PYTHON} -m evaluation status --config config.yaml"
        done = run_shell(line, paper.folder, PYTHONPATH=f"{pressed}:{ROOT}")
    finally:
        signal.signal(signal.SIGINT, handled)
    assert (done.returncode, done.stderr) == (code, said)


def test_a_panic_of_a_library_in_rust_is_a_sentence() -> None:
    """No module exports its class, which is no Exception."""
    panic = type("PanicException", (BaseException,), {})("index out of bounds")

    def fails() -> int:
        raise panic

    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        assert _without_errors(fails, is_scoring=False) == 1
    assert said.getvalue().startswith("error: a library gave up on its input (index out of bounds)")


TORCH = "alloc_cpu.cpp:127: DefaultCPUAllocator: can't allocate memory (Cannot allocate memory)"


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError(TORCH)])
def test_too_little_memory_is_a_sentence(
    error: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails() -> int:
        raise error

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
