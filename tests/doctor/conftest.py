"""A prefilled world to break, and a stand-in for NVML."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evaluation.doctor.examine import examine
from evaluation.doctor.findings import Check
from evaluation.errors import ScoringError
from evaluation.scoring.engine import gpus
from evaluation.scoring.engine.device import choose_device
from evaluation.scoring.engine.gpus import Gpu
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


Nvml = Callable[..., None]


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> Nvml:
    """Has NVML answer with lists of GPUs or with errors, one after the other; the last for ever.

    `shown` is CUDA_VISIBLE_DEVICES.
    """

    def install(*answers: list[Gpu] | Exception, shown: str | None = None) -> None:
        left = list(answers)
        if shown is not None:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", shown)

        def read() -> list[Gpu]:
            answer = left.pop(0) if len(left) > 1 else left[0]
            if isinstance(answer, Exception):
                raise answer
            return answer

        monkeypatch.setattr(gpus, "read_gpus", read)

    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return install


def stopped() -> str:
    """The sentence by which a job stops as it chooses its device."""
    with pytest.raises(ScoringError) as caught:
        choose_device("auto")
    return str(caught.value)


def card(used: int | None, total: int = 81920, *processes: str) -> Gpu:
    """The first GPU of a machine; memory in MiB."""
    return Gpu("0", "GPU-aaa", "NVIDIA A100", used, total, processes)


HOLDER = "process 4242 (/usr/bin/python, 60,000 MiB)"
