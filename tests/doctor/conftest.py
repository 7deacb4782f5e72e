"""A prefilled world to break, and a stand-in for nvidia-smi."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evaluation.doctor.examine import examine
from evaluation.doctor.findings import Check
from tests.workflow.world import World


def look(world: World, stage: str | None = None, *, gate: bool = False) -> dict[str, Check]:
    """All checks by name."""
    return {check.name: check for check in examine(world.config, stage, gate=gate)}


def only(check: Check, state: str = "fault") -> str:
    """The sentence of a check's single finding."""
    assert [finding.state for finding in check.findings] == [state], check
    return check.findings[0].sentence


def doctor(world: World, *arguments: str) -> tuple[subprocess.CompletedProcess[str], Any]:
    """The command as a user runs it, and its JSON."""
    done = world.evaluation("doctor", "--json", *arguments)
    return done, json.loads(done.stdout)


NvidiaSmi = Callable[..., None]


@pytest.fixture
def nvidia_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NvidiaSmi:
    """Puts a program of that name on PATH: it prints given lines, or any other end."""

    def install(
        gpus: str = "",
        apps: str = "",
        *,
        otherwise: str = "",
        driver: str = "",
        listed: str = "",
        document: str = "",
    ) -> None:
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        answers = {
            "--query-gpu=driver_version": driver,
            "--query-gpu=*": gpus,
            "--query-compute-apps=*": apps,
            "-L": listed,
            "-q": document,
        }
        lines = ["#!/bin/sh", otherwise, 'case "$1" in']
        lines += [f"{asked}) printf '%s' '{said}';;" for asked, said in answers.items()]
        lines += ["esac"]
        program = folder / "nvidia-smi"
        program.write_text("\n".join(lines) + "\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")

    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return install
