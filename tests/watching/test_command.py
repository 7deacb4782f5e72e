"""`python -m evaluation watch`, as a user starts and ends it."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from tests.histories.warm import wait_for
from tests.watching.conftest import Watched
from tests.workflow.paper import ROOT

FAKE = "import sys; from tests.watching.stand_in import main; sys.exit(main(sys.argv[1:]))"


def start(watched: Watched, *arguments: str, is_real: bool = False) -> "subprocess.Popen[str]":
    """In a folder where `python -m snakemake` is the stand-in, unless the real one is wanted."""
    if not is_real:
        (fake := watched.world.folder / "snakemake").mkdir(exist_ok=True)
        (fake / "__init__.py").touch()
        (fake / "__main__.py").write_text(FAKE)
    return subprocess.Popen(
        [sys.executable, "-m", "evaluation", "watch", "--config", "config.yaml", *arguments],
        cwd=watched.world.folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextlib.contextmanager
def ended(process: "subprocess.Popen[str]") -> Iterator[None]:
    """Killed at the end, if it has not ended by itself."""
    try:
        yield
    finally:
        process.kill()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_stops_the_snakemake_too(watched: Watched, number: int, code: int) -> None:
    watched.copy(10)
    (watched.play / "hang").touch()
    with start(watched, "--quiet", "0.1", "--", "--cores", "1") as process, ended(process):
        wait_for("its start", (watched.play / "hangs").exists, 60.0)
        process.send_signal(number)
        said, errors = process.communicate(timeout=60)
    assert process.returncode == code, errors
    assert (watched.play / "stopped").exists()
    assert said.splitlines()[-1].endswith("scores are kept")
    assert "Traceback" not in said + errors
    assert not watched.world.results("stage1", ".watch", "lock.json").exists()


@pytest.mark.parametrize(
    ("option", "how"), [("--quiet=0.1", "a check every "), ("--once", "one check")]
)
def test_a_killed_watcher_is_succeeded(watched: Watched, option: str, how: str) -> None:
    """Its Snakemake lives on: the next one waits for that, then does what is left, at once."""
    watched.copy(10)
    (watched.play / "hang").touch()
    with start(watched, "--quiet", "0.1", "--", "--cores", "1") as first, ended(first):
        wait_for("its start", (watched.play / "hangs").exists, 60.0)
    waiting = ("--quiet", "0.1", "--interval", "120", option, "--", "-c1")
    with start(watched, *waiting) as second, ended(second):
        assert second.stdout is not None
        assert f"watching stage1: {how}" in second.stdout.readline()
        line = second.stdout.readline()
        assert "Snakemake of a watcher that has ended, still runs" in line
        (watched.play / "hang").unlink()
        os.kill(int(line.partition("process ")[2].partition(",")[0]), signal.SIGINT)
        begin = time.monotonic()
        assert any("step 10: evaluated" in line for line in second.stdout)
        assert time.monotonic() - begin < 100
    assert watched.scored() == ["10 whole"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--once"], "-- --profile slurm_profile"),
        (["--once", "--", "--cores", "1", "--configfile", "x.yaml"], "before the `--`"),
        (["--once", "--stage", "stage9", "--", "--cores", "1"], "no stage 'stage9'"),
    ],
)
def test_what_cannot_start_says_why(watched: Watched, arguments: list[str], words: str) -> None:
    process = start(watched, *arguments)
    said, errors = process.communicate(timeout=60)
    assert (process.returncode, said) == (1, "")
    assert words in errors
    assert errors.count("\n") == 1


def test_with_the_engine_and_snakemake(watched: Watched) -> None:
    """Scored, with tables and pages that say what is still to come."""
    text = watched.world.config.read_text().replace("steps: all", "steps: [10, 20]")
    watched.world.config.write_text(text)
    watched.copy(10)
    process = start(watched, "--once", "--quiet", "0.1", "--", "--cores", "1", is_real=True)
    said, errors = process.communicate()
    assert process.returncode == 0, said + errors
    assert "stage1 step 10: evaluated" in said
    results = watched.world.results("stage1")
    assert (results / "by_checkpoint" / "step_10" / "tier2_ppl.json").is_file()
    assert "tier2_ppl.json missing: step 20" in (results / "report.html").read_text()
    assert watched.world.results("report.html").is_file()
