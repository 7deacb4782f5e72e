"""The command line as it is typed: completion in three shells, misspelt names."""

import os
import pty
import select
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from evaluation.commands.parser import INSTALLED, build_parser, parsers_of
from tests.tools.conftest import Command

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
