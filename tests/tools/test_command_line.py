"""The command line as it is typed: completion in three shells, misspelt names, 80 columns."""

import os
import pty
import select
import shutil
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from evaluation.commands.parser import INSTALLED, build_parser, parsers_of
from tests.bridge.folders import make_plans, write_side
from tests.conftest import ROOT
from tests.tools.conftest import Command
from tests.workflow.world import World

PARSERS = parsers_of(build_parser())


@pytest.fixture(params=["bash", "zsh", "fish"])
def shell(request: pytest.FixtureRequest, command: Command, tmp_path: Path) -> tuple[str, Path]:
    """A shell that is installed, and its script."""
    if shutil.which(request.param) is None:
        pytest.skip(f"no {request.param} on this machine; apt-get install {request.param}")
    script = tmp_path / f"_{INSTALLED}"
    script.write_text(command("completion", request.param).out)
    (tmp_path / "mine.yaml").touch()
    return request.param, script


def test_completion(shell: tuple[str, Path]) -> None:
    for typed, completed in (
        ("bridge-t", "bridge-table"),
        ("status --js", "--json"),
        ("compare a b --by tok", "tokens"),
        ("status --config mi", "mine.yaml"),
    ):
        assert completed in _completed(*shell, f"{INSTALLED} {typed}"), typed


def _completed(shell: str, script: Path, line: str) -> str:
    if shell == "zsh":
        return _completed_by_zsh(script, line)
    words = line.split()
    lines = {
        "bash": f"source {script}; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; "
        '_shtab_staged_evaluation; echo "${COMPREPLY[@]}"',
        "fish": f"source {script}; complete -C '{line}'",
    }
    done = subprocess.run(
        [shell, "-c", lines[shell]], cwd=script.parent, capture_output=True, text=True, check=False
    )
    return done.stdout


def _completed_by_zsh(script: Path, line: str) -> str:
    """Press Tab in a terminal, as zsh completes nowhere else."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(script.parent)
        os.execvpe("zsh", ["zsh", "-f", "-i"], {**os.environ, "TERM": "dumb"})
    setup = f"fpath=({script.parent} $fpath); autoload -U compinit; compinit -u -D; echo REA''DY\n"
    os.write(terminal, setup.encode())
    _read_until(terminal, "READY")
    os.write(terminal, f"{line}\t".encode())
    time.sleep(1)
    os.write(terminal, b" DONE")
    said = _read_until(terminal, "DONE")
    os.close(terminal)
    os.waitpid(child, 0)
    return said.replace("\b", "")


def _read_until(terminal: int, word: str) -> str:
    """Read until a word comes, or nobody writes any more."""
    said, end = b"", time.monotonic() + 120
    while word.encode() not in said and time.monotonic() < end:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                said += os.read(terminal, 65536)
            except OSError:
                break
    return said.decode()


@pytest.mark.parametrize("command", PARSERS)
def test_misspelt_options(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    names = (name for action in PARSERS[command]._actions for name in action.option_strings)
    for option in (name for name in names if len(name) > 4):
        typed = f"{option[:3]}x{option[3:]}"
        with pytest.raises(SystemExit, match="2"):
            build_parser().parse_args([command, typed])
        assert f"no option {typed} (did you mean --" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "meant"),
    [("statsu", "status"), ("compare a b --by step", "steps"), ("table x --format cvs", "csv")],
)
def test_misspelt_choices(line: str, meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        build_parser().parse_args(line.split())
    assert f"(did you mean {meant}?)" in capsys.readouterr().err


def test_help_fits_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    texts = [parser.format_help() for parser in (build_parser(), *PARSERS.values())]
    assert [line for text in texts for line in text.splitlines() if len(line) > 80] == []


LINES = """
import sys
from evaluation.__main__ import main
for line in sys.argv[1:]:
    try:
        main(line.split())
    except SystemExit:
        pass
"""


def test_what_is_printed_fits_80_columns(tmp_path: Path, world: World) -> None:
    """In a terminal of 80 columns; through a pipe, tables have all columns side by side."""
    plan = make_plans(tmp_path)["first"]
    folders = [tmp_path / name for name in "AB"]
    for number, folder in enumerate(folders):
        write_side(folder, plan, step=10 * number, seed=number)
    pair = "compare A B"
    lines = [pair, "table A=A B=B C=../t/A", "compare A nowhere", "statsu", "compare A B --by step"]
    lines += [f"{name} --config {world.config}" for name in ("status", "doctor", "bridge-table")]
    terminal, end = pty.openpty()
    termios.tcsetwinsize(end, (24, 80))
    environment = {k: v for k, v in os.environ.items() if k != "COLUMNS"} | {
        "PYTHONPATH": str(ROOT)
    }
    command = [sys.executable, "-c", LINES]
    child = subprocess.Popen(
        [*command, *lines], cwd=tmp_path, env=environment, stdin=end, stdout=end, stderr=end
    )
    os.close(end)
    said = _read_until(terminal, "no such word")
    child.wait()
    shown = said.replace("\r", "").splitlines()
    unbroken = [line for line in shown if "`" in line or len(line.split()) == 1]
    assert [line for line in shown if len(line) > 80 and line not in unbroken] == []
    assert sum("A - B" in line for line in shown) == 1
    assert "(did you mean status?)" in " ".join(said.split())
    piped = subprocess.run(
        [*command, pair], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert "p (Holm)" in next(one for one in piped.stdout.splitlines() if "A - B" in one)
