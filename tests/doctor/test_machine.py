"""A machine: versions, Slurm's commands; and one screen for all that is wrong."""

import importlib.metadata
import os
from pathlib import Path

import pytest

from evaluation.doctor import machine
from evaluation.doctor.findings import Check, Finding, screen, worst
from evaluation.doctor.machine import check_slurm, check_versions
from tests.doctor.conftest import only


def test_the_locked_versions_are_fine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\ndependencies = ["pytest>=1"]\n')
    locked = "".join(f"{name}=={importlib.metadata.version(name)}\n" for name in machine.RUNNERS)
    (tmp_path / "requirements.lock").write_text(locked)
    monkeypatch.setattr(machine, "ROOT", tmp_path)
    assert check_versions().state == "ok"


def test_versions_that_do_not_fit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    needed = '["pytest>=1000", "no-such-package>=1", "pyyaml"]'
    (tmp_path / "pyproject.toml").write_text(f"[project]\ndependencies = {needed}\n")
    plugin = "snakemake-executor-plugin-slurm"
    found = {name: importlib.metadata.version(name) for name in machine.RUNNERS}
    (tmp_path / "requirements.lock").write_text(
        "".join(f"{name}=={'0.1' if name == plugin else found[name]}\n" for name in found)
    )
    monkeypatch.setattr(machine, "ROOT", tmp_path)
    findings = {finding.subject: finding for finding in check_versions().findings}
    assert findings.keys() == {"pytest", "no-such-package", plugin}
    assert "is not >=1000" in findings["pytest"].sentence
    assert "not installed; run `pip install" in findings["no-such-package"].sentence
    assert (findings[plugin].state, "tried with 0.1" in findings[plugin].sentence) == (
        "warning",
        True,
    )


def install(folder: Path, *names: str, says: str = "Slurmctld(primary) at x is UP") -> None:
    for name in names:
        (folder / name).write_text(f"#!/bin/sh\necho '{says}'\n")
        (folder / name).chmod(0o755)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH of this folder alone."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert os.listdir(tmp_path) == []
    return tmp_path


def test_without_slurm(path: Path) -> None:
    assert "login node" in only(check_slurm(), "warning")


def test_half_of_slurm(path: Path) -> None:
    install(path, "sbatch", "squeue", "scontrol")
    assert "not on PATH: scancel" in only(check_slurm())


def test_all_of_slurm(path: Path) -> None:
    install(path, *machine._COMMANDS)
    assert check_slurm().state == "ok"


def test_a_controller_that_is_down(path: Path) -> None:
    install(path, *machine._COMMANDS, says="Slurmctld(primary) at x is DOWN")
    assert "is DOWN" in only(check_slurm(), "warning")


def broken(number: int) -> Finding:
    path = f"/ckpts/{number}/model/x_tp-rank-0-of-2.safetensors"
    return Finding(
        "fault", f"stage1/{number}", f"{path}: ends early ({number} bytes); wait, or copy it again"
    )


def test_many_of_one_kind_are_one_paragraph() -> None:
    text = screen([Check("checkpoints", "300 to score", tuple(map(broken, range(300))))])
    assert len(text.splitlines()) == 4
    assert "300 alike: stage1/0, stage1/1" in text
    assert "and 294 more" in text
    assert "/ckpts/0/model" in text


def test_different_kinds_have_a_sentence_each_up_to_a_limit() -> None:
    findings = [Finding("fault", f"s{n}", f"x: bad; do {word}") for n, word in enumerate("abcdef")]
    text = screen([Check("caches", "6", tuple(findings))])
    assert "do d" in text
    assert "do e" not in text
    assert "2 more findings of other kinds" in text


def test_faults_come_before_warnings_and_decide() -> None:
    mixed = Check("a", "", (Finding("warning", "", "w; x"), Finding("fault", "", "f; y")))
    text = screen([mixed, Check("b", "fine")])
    assert text.index("fault: a") < text.index("warning: a")
    assert worst([mixed, Check("b", "fine")]) == "fault"
    assert worst([Check("b", "fine")]) == "ok"
    assert worst([mixed.as_warning()]) == "warning"


def test_a_long_summary_is_cut_to_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = [Check("a", "x" * 500)]
    assert "x" * 500 in screen(checks)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert {len(line) for line in screen(checks).splitlines()} == {80}
