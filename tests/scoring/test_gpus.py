"""Jobs at once, each a process with two pretended GPUs."""

import os
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import ROOT

JOB = """
import os, sys
from evaluation.scoring.gpus import take_gpus
take_gpus(int(sys.argv[1]))
print(os.environ.get("CUDA_VISIBLE_DEVICES"), flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def _locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)


@contextmanager
def job(most: int, visible: str = "0,1", **variables: str) -> Iterator["subprocess.Popen[str]"]:
    """A job that takes GPUs, and has them until it is left or killed."""
    command = [sys.executable, "-c", JOB, str(most)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": visible}
    with subprocess.Popen(
        command, env=environment | variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True,
    ) as process:  # fmt: skip
        yield process
        process.kill()


def taken(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_jobs_at_once_have_different_gpus_and_a_third_waits() -> None:
    with job(1) as first, job(1) as second:
        assert {taken(first), taken(second)} == {"0", "1"}
        with job(1) as third:
            assert select.select([third.stdout], [], [], 5) == ([], [], [])
            first.kill()
            first.wait()
            assert taken(third) in ("0", "1")
            assert second.poll() is None


def test_jobs_of_slurm_have_their_own_numbers() -> None:
    with job(1, SLURM_JOB_ID="1") as first, job(1, SLURM_JOB_ID="2") as second:
        assert (taken(first), taken(second)) == ("0", "0")
