"""A machine: versions, Slurm's commands; and one screen for all that is wrong."""

import importlib.metadata
from collections.abc import Sequence
from pathlib import Path

import pytest

from evaluation.doctor import machine
from evaluation.doctor.findings import Check, Finding, screen, worst
from evaluation.doctor.machine import check_slurm, check_versions
from tests.doctor.conftest import only, program

PLUGIN = machine.PLUGIN


def test_versions(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What is required, and what is locked: the installed versions, but then for one of them."""
    monkeypatch.setattr(machine, "ROOT", tmp_path)

    def findings(needed: list[str], **other: str) -> dict[str, Finding]:
        versions = {name: importlib.metadata.version(name) for name in machine.RUNNERS}
        locked = "".join(f"{name}=={one}\n" for name, one in (versions | other).items())
        (tmp_path / "locks").mkdir(exist_ok=True)
        (tmp_path / "locks/requirements.lock").write_text(locked)
        (tmp_path / "pyproject.toml").write_text(f"[project]\ndependencies = {needed}\n")
        return {finding.subject: finding for finding in check_versions().findings}

    assert findings(["pytest>=1"]) == {}
    found = findings(["pytest>=1000", "no-such-package>=1", "pyyaml"], **{PLUGIN: "0.1"})
    assert found.keys() == {"pytest", "no-such-package", PLUGIN}
    assert "is not >=1000" in found["pytest"].sentence
    assert "not installed; run `pip install" in found["no-such-package"].sentence
    assert found[PLUGIN].state == "warning"
    assert "only 0.1 was tested" in found[PLUGIN].sentence


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH of this folder alone."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


ALL = ("sbatch", "squeue", "scontrol", "scancel")
UP = "Slurmctld(primary) at x is UP"
DOWN = "Slurmctld(primary) at x is DOWN"


@pytest.mark.parametrize(
    ("names", "answer", "state", "word"),
    [
        ((), UP, "warning", "login node"),
        (("sbatch", "squeue", "scontrol"), UP, "fault", "not on PATH: scancel"),
        (ALL, UP, "ok", None),
        (ALL, DOWN, "warning", "is DOWN"),
    ],
)
def test_slurm(path: Path, names: Sequence[str], answer: str, state: str, word: str | None) -> None:
    for name in names:
        program(path, name, f"echo '{answer}'")
    check = check_slurm()
    assert check.state == state
    assert word is None or word in only(check, state)


def test_many_of_one_kind_are_one_paragraph() -> None:
    sentence = "/ckpts/{0}/model/x.safetensors: ends early ({0} bytes); wait, or copy it again"
    findings = [Finding("fault", f"stage1/{n}", sentence.format(n)) for n in range(300)]
    text = screen([Check("checkpoints", "300 to score", tuple(findings))])
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
    assert worst([mixed.as_warning]) == "warning"
