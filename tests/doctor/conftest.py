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


def program(folder: Path, name: str, does: str = "") -> None:
    """A shell script."""
    (folder / name).write_text(f"#!/bin/sh\n{does}\n")
    (folder / name).chmod(0o755)


def doctor(world: World, *arguments: str) -> tuple[subprocess.CompletedProcess[str], Any]:
    """The command as a user runs it, and its JSON."""
    done = world.evaluation("doctor", "--json", *arguments)
    return done, json.loads(done.stdout)


Held = Callable[..., None]


@pytest.fixture
def held(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Held:
    """Has an `nvidia-smi` print lines of processes, if it is asked for a GPU."""
    folder = tmp_path_factory.mktemp("bin")
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def install(*lines: str, gpu: str = "*") -> None:
        shown = "".join(f"echo '{line}'\n" for line in lines)
        program(folder, "nvidia-smi", f"case $1 in --id={gpu}) ;; *) exit 9;; esac\n{shown}")

    return install


HOLDER = "process 4242 (/usr/bin/python, 60000 MiB)"
