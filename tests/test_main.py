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

from evaluation.commands.parser import build_parser
from evaluation.exit_codes import exit_code, machine_fault
from tests.histories.warm import run_python, run_shell
from tests.workflow.paper import ROOT, Paper

PYTHON = sys.executable
STATUS = f"{PYTHON} -m evaluation status --config config.yaml"
WIDE = f"{STATUS} --json"
"""Prints more than one line."""


COMMANDS: dict[str, argparse.ArgumentParser] = next(
    action.choices for action in build_parser()._actions if isinstance(action.choices, dict)
)


@pytest.fixture
def paper(tmp_path: Path) -> Paper:
    return Paper(tmp_path / "paper", {"one": {}, "two": {}})


def shell(paper: Paper, line: str) -> subprocess.CompletedProcess[str]:
    return run_shell(line, paper.folder, PYTHONUNBUFFERED="")


EVALUATION = f"{PYTHON} -m evaluation"
LINES: dict[str, tuple[str, int, str]] = {
    "as it is": (STATUS, 1, ""),
    "read by head": (f"{WIDE} | head -c 1", 0, ""),
    "nobody reads": (f"(sleep 0.5; {WIDE}; echo $? >&2) | true", 0, "141"),
    "help that nobody reads": (f"(sleep 0.5; {EVALUATION} --help; echo $? >&2) | true", 0, "141"),
    "standard output closed": (f"{WIDE} >&-", 1, ""),
    "all closed": (f"{WIDE} <&- >&- 2>&-", 1, ""),
    "standard error closed, and an error": (f"{EVALUATION} status --config nope 2>&-", 1, ""),
    "standard output full": (f"{STATUS} > /dev/full", 1, "standard output: No space left"),
    "ASCII, strictly": (
        f"PYTHONIOENCODING=ascii:strict {EVALUATION} status --config \U0001f600.yaml",
        1,
        r"\U0001f600.yaml: no such file",
    ),
    "no locale": (f"LC_ALL=C {EVALUATION} status --config é.yaml", 1, "é.yaml: no such file"),
    "not UTF-8": (
        f"{EVALUATION} status --config $'\\xff.yaml'",
        1,
        r"\udcff.yaml: no such file",
    ),
    "without docstrings": (f"PYTHONOPTIMIZE=2 {STATUS} --help", 0, ""),
    "no packages": (
        f"{PYTHON} -S -m evaluation status",
        1,
        "package pydantic is not installed for",
    ),
    "Snakemake's name of the option": (f"{EVALUATION} status --configfile config.yaml", 1, ""),
    "little memory": (f"ulimit -v 60000; {STATUS}", 1, "58 MB (`ulimit -v`), and that is not"),
    "folder gone": (
        f"mkdir gone; cd gone; rmdir ../gone; {STATUS}",
        1,
        "has been deleted; `cd` to one",
    ),
}


@pytest.mark.parametrize("name", LINES)
def test_streams(paper: Paper, name: str) -> None:
    line, code, said = LINES[name]
    done = shell(paper, line)
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


LOGLIKELIHOOD = "loglikelihood ckpt --requests r.jsonl --output o.jsonl --max-length"
USAGE: list[tuple[str, str]] = [
    (f"{LOGLIKELIHOOD} 0", "'0' is no whole number from 1"),
    (f"{LOGLIKELIHOOD} 1e3", "'1e3' is no whole number"),
    (f"{LOGLIKELIHOOD} 9223372036854775808", "is no whole number from 1"),
    ("score --stage one --step=-1", "'-1' is no whole number from 0"),
    ("score --stage one", "--step"),
    ("import-hf a b --sequence-length 0", "'0' is no whole number from 2"),
    ("import-hf a b --sequence-length=-4", "'-4' is no whole number from 2"),
    ("import-hf a b --step=-1", "'-1' is no whole number from 0"),
    ("import-hf a b --tp 0", "'0' is no whole number from 1"),
    ("import-hf a b --tp=-2", "'-2' is no whole number from 1"),
    (f"import-hf a b --tp {10**30}", "no whole number from 1 to"),
    *(
        (
            f"verify ckpt --reference r --tolerance={value}",
            f"--tolerance: {value!r} is no finite number from 0 on",
        )
        for value in ("nan", "-1", "inf", "-inf")
    ),
    ("stats", "invalid choice: 'stats'"),
    ("", "COMMAND"),
]


@pytest.mark.parametrize(("line", "said"), USAGE)
def test_usage(capsys: pytest.CaptureFixture[str], line: str, said: str) -> None:
    with pytest.raises(SystemExit) as caught:
        build_parser().parse_args(line.split())
    assert caught.value.code == 2
    assert said in capsys.readouterr().err
