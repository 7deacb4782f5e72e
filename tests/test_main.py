"""The edges of the command line: streams, signals, a missing environment, what the system refuses."""

import argparse
import signal
import sys
from pathlib import Path

import pytest

from evaluation.commands.parser import build_parser, parsers_of
from evaluation.exit_codes import _without_errors
from tests.histories.warm import run_shell
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


def test_what_the_system_refuses_is_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _without_errors(lambda: len((tmp_path / "absent").read_bytes())) == 1
    assert (
        capsys.readouterr().err
        == f"error: [Errno 2] No such file or directory: '{tmp_path}/absent'\n"
    )


@pytest.mark.parametrize(
    ("module", "code", "said"),
    [
        ("logging", -signal.SIGINT, ""),
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


@pytest.mark.parametrize(("line", "said"), cases("command_lines", "usage"))
def test_usage(capsys: pytest.CaptureFixture[str], line: str, said: str) -> None:
    with pytest.raises(SystemExit) as caught:
        build_parser().parse_args(line.split())
    assert caught.value.code == 2
    assert said in capsys.readouterr().err
