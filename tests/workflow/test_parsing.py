"""Every Slurm job parses the workflow again, so parsing is light and free of the model's libraries."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.histories.warm import run_python

HEAVY = ("torch", "transformers", "datasets")


@pytest.fixture
def guarded(tmp_path: Path) -> dict[str, str]:
    """An environment in which importing a heavy library is an error."""
    for name in HEAVY:
        (tmp_path / f"{name}.py").write_text(f"raise RuntimeError('{name} was imported')\n")
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    return {"PYTHONPATH": path, "SCRATCH": str(tmp_path)}


def run(command: list[str], variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return run_python(["-m", *command], ROOT, cold=True, **variables)


def test_the_guard_works(guarded: dict[str, str]) -> None:
    done = run(["evaluation.scoring.job"], guarded)
    assert "was imported" in done.stderr


def test_the_default_workflow_parses_without_them(guarded: dict[str, str]) -> None:
    done = run(["snakemake", "--list-rules"], guarded)
    assert done.returncode == 0, done.stderr
    rules = done.stdout.split()
    assert {"all", "prefill", "stage1", "stage2", "stage3", "stage4"} <= set(rules)


def test_a_missing_checkpoint_stops_the_dry_run_in_one_sentence(guarded: dict[str, str]) -> None:
    done = run(["snakemake", "-n", "stage1"], guarded)
    assert done.returncode == 1
    output = done.stdout + done.stderr
    assert "ckpts/stage1/2000: no checkpoint there" in output
    assert "was imported" not in output


def test_an_unset_variable_is_named(
    guarded: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    del guarded["SCRATCH"]
    monkeypatch.delenv("SCRATCH", raising=False)
    done = run(["snakemake", "-n", "stage1"], guarded)
    assert done.returncode == 1
    assert "$SCRATCH, which is not set: run `export SCRATCH=" in done.stdout + done.stderr


@pytest.mark.parametrize("command", [["--help"], ["status", "--help"], ["score", "--help"]])
def test_help_imports_nothing_heavy(guarded: dict[str, str], command: list[str]) -> None:
    done = run(["evaluation", *command], guarded)
    assert done.returncode == 0, done.stderr
    assert "usage: python -m evaluation" in done.stdout
