"""What a run prints, by Snakemake's own runs of a small workflow."""

import re
from pathlib import Path

import pytest

from tests.histories.warm import run_python

WORKFLOW = """
from evaluation.orchestration.internals import Internals
from evaluation.orchestration.run_log import print_steps, running_log

if workflow.is_main_process:
    Internals(workflow).before_execution(print_steps)

onsuccess:
    print(running_log().warnings() if running_log() else "no steps")

rule all:
    input: "a/1", "a/2"

rule make:
    input: "source"
    output: "a/{number}"
    log: "logs/{number}"
    benchmark: "logs/{number}.benchmark"
    shell: "(echo '10:00:00 WARNING all is small'; cat {input}) > {log}; "
        "! grep -q error {log} && touch {output}"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "Snakefile").write_text(WORKFLOW)
    (tmp_path / "source").write_text("fine")
    return tmp_path


def lines(folder: Path, *options: str) -> list[str]:
    """What a run prints, with `T` for times of day."""
    done = run_python(["-m", "snakemake", "--cores", "1", *options], folder)
    return re.sub(r"\d\d:\d\d:\d\d", "T", done.stdout + done.stderr).splitlines()


def test_a_line_a_step(folder: Path) -> None:
    printed = lines(folder)
    steps = [line for line in printed if line.startswith("T ")]
    assert steps[0] in ("T make 1: begun (logs/1)", "T make 2: begun (logs/2)")
    assert sum(line.startswith(("T make 1: done; ", "T make 2: done; ")) for line in steps) == 2
    assert steps[-1] == "T all: done; 3 of 3 steps"
    assert len(steps) == 5
    assert not [line for line in printed if "input:" in line or "reason" in line.lower()]
    both = ("make 1, make 2: all is small", "make 2, make 1: all is small")
    assert any(words in line for line in printed for words in both)
    (log,) = (folder / ".snakemake" / "log").glob("*.log")
    assert "input: source" in log.read_text()


def test_what_failed_is_said_in_its_own_words(folder: Path) -> None:
    (folder / "source").write_text(
        "fault: luck\n    there is none\nfault: 2 alike; the first:\n    lost\nerror: no luck\n"
    )
    printed = lines(folder, "--keep-going")
    line = printed.index("T make 1: failed: no luck (logs/1)")
    assert printed[line + 1 : line + 3] == ["  luck: there is none", "  2 alike; the first: lost"]
    assert "T make 2: failed: no luck (logs/2)" in printed
    (folder / "source").write_text("error")  # no sentence of ours: Snakemake shows what it knows
    assert "Error in rule make:" in lines(folder)


@pytest.mark.parametrize(
    ("options", "shown", "hidden"),
    [
        (["--quiet", "progress"], "T make 1: begun (logs/1)", "T all: done; 3 of 3 steps"),
        (["--quiet", "rules"], "T all: done; 3 of 3 steps", "T make 1: begun (logs/1)"),
        (["--verbose"], "    input: source", "T all: done; 3 of 3 steps"),
        (["--printshellcmds"], "T all: done; 3 of 3 steps", "    input: source"),
    ],
)
def test_options_of_snakemake(folder: Path, options: list[str], shown: str, hidden: str) -> None:
    printed = lines(folder, *options)
    assert shown in printed
    assert hidden not in printed


def test_nothing_with_quiet_all(folder: Path) -> None:
    printed = lines(folder, "--quiet", "all")
    assert [line for line in printed if "make" in line and "T" in line] == []
