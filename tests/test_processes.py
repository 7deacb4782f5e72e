"""Exit codes and signals, cores and memory, and programs of other Pythons, none of which is left."""

import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

from evaluation.commands.parser import build_parser, parsers_of
from evaluation.errors import EvaluationError
from evaluation.processes import ProgramEnd, exit_code, run_python, usable_cores, usable_memory
from tests.conftest import ROOT

PYTHON = sys.executable


def run_code(code: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [PYTHON, "-c", f"import os, signal, sys\n{code}", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)


def run_action(action: str) -> "subprocess.CompletedProcess[str]":
    code = "from evaluation.processes import exit_code\ndef act():\n"
    return run_code(f"{code}    {action}\n    return 0\nsys.exit(exit_code(act))")


@pytest.mark.parametrize(
    ("action", "code", "words"),
    [
        ("pass", 0, ""),
        ("open('/absent/file')", 1, "error: [Errno 2] No such file or directory: '/absent/file'"),
        ("import absent_package", 1, "the package absent_package is not installed"),
        ("os.kill(os.getpid(), signal.SIGINT)", 130, "interrupted; run the same command again"),
        ("os.kill(os.getpid(), signal.SIGTERM)", 143, ""),
    ],
)
def test_an_end_of_a_command(action: str, code: int, words: str) -> None:
    done = run_action(action)
    assert done.returncode == code
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_reader_that_has_ended() -> None:
    command = f"{PYTHON} -m evaluation --help | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.strip() in ("0", "141")
    assert done.stderr == ""


def test_an_error_is_one_printable_line(capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> int:
        raise EvaluationError("a\x1b[2J; remove it")

    assert exit_code(fail) == 1
    assert capsys.readouterr().err == "error: a\\x1b[2J; remove it\n"


def test_memory_of_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_MEM_PER_NODE", raising=False)
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 1 << 20 < usable_memory() < total
    monkeypatch.setenv("SLURM_MEM_PER_NODE", "1")
    assert usable_memory() == 0
    assert 1 <= usable_cores() <= (os.cpu_count() or 1)


def run_script(folder: Path, script: str, seconds: float = 60) -> ProgramEnd:
    python = folder / "python"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    (folder / "work").mkdir()
    return run_python(python, "none", (), folder / "work", {}, seconds)


@pytest.mark.parametrize(
    ("script", "ended"),
    [
        ("echo one; echo two >&2; echo; exit 3", ProgramEnd(3, "two")),
        ("true", ProgramEnd(0, "")),
        ("head -c 100000 /dev/zero | tr '\\0' x", ProgramEnd(0, "x" * 300)),
        ("echo begun; exec sleep 600", ProgramEnd(None, "begun")),
    ],
)
def test_how_a_program_ended(tmp_path: Path, script: str, ended: ProgramEnd) -> None:
    assert run_script(tmp_path, script, seconds=2) == ended


def test_it_ends_with_whoever_runs_it(tmp_path: Path) -> None:
    """Though it knows nothing of its parent, which is killed before it can end anything."""
    parent = (
        "from pathlib import Path; import sys; from tests.test_processes import run_script;"
        "run_script(Path(sys.argv[1]), 'echo $$ > number.tmp; mv number.tmp number; exec sleep 600')"
    )
    command = [PYTHON, "-c", parent, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT) as asker:
        while not (number := tmp_path / "work/number").exists():
            assert asker.poll() is None
        child = os.pidfd_open(int(number.read_text()))
        asker.kill()
    assert select.select([child], [], [], 30)[0], "it outlived its parent"


def test_each_command_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    parsers = parsers_of(build_parser())
    for parser in parsers.values():
        assert "usage" in parser.format_help()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("prefil", "did you mean prefill?"),
        ("doctor --stages x", "did you mean --stage?"),
        ("completion", "no longer exists"),
        ("score --stage s --step 1 --checkpoint 3", "no longer exists"),
        ("score --stage s", "--step"),
    ],
)
def test_wrong_usage(line: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        build_parser().parse_args(line.split())
    assert ended.value.code == 2
    assert words in capsys.readouterr().err
