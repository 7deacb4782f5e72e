"""A stand-in for a provider's environment."""

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from evaluation.checkpoints.subjects import step_subject
from evaluation.dependencies.making import make
from evaluation.dependencies.steps import COLLECT, SCORE
from evaluation.grading.by_hand import verify_by_hand
from evaluation.settings.config import load_config
from evaluation.settings.plan import StagePlan
from evaluation.settings.planning import plan_stages
from tests.workflow.world import World, write_rows

Installed = Callable[..., Path]


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    """Writes an interpreter that runs the stand-in, whatever module it is given."""

    def write(**does: Any) -> Path:
        path = tmp_path / "environment" / "python"
        path.parent.mkdir(exist_ok=True)
        program = Path(__file__).parent / "stand_in.py"
        words = [sys.executable, str(program), json.dumps(does)]
        path.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        path.chmod(0o755)
        return path

    return write


def planned(
    world: World,
    section: str,
    tasks: dict[str, Any],
    stage: dict[str, Any] | None = None,
    **settings: Any,
) -> StagePlan:
    """The plan of stage 2 with these tasks; `stage` and `settings` are other keys."""
    content = {"extends": "base", section: tasks}
    (world.folder / "suites" / "theirs.yaml").write_text(yaml.safe_dump(content))
    world.change_stage("stage2", suites=["theirs"], **(stage or {}))
    world.change(**settings)
    return plan_stages(load_config(world.config))["stage2"]


def verified(
    plan: StagePlan, name: str, folder: Path, completions: list[tuple[str, str]]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Rows and summary of completions from elsewhere: ids of prompts and texts."""
    path = folder / "completions.jsonl"
    write_rows(path, [{"id": id, "completion": text} for id, text in completions])
    return verify_by_hand(plan, name, path)


def evaluated(plan: StagePlan, file: str) -> dict[str, Any]:
    """The content of a tier's file after a step was scored and collected."""
    subject = step_subject(plan, 5)
    for done in (make(SCORE, subject), make(COLLECT, subject)):
        assert done.error is None, done.error
    found: dict[str, Any] = json.loads((subject.folder / file).read_text())
    return found


def reported(plan: StagePlan, name: str) -> dict[str, Any]:
    """What the cache of a generated task has of its provider."""
    meta = json.loads((plan.cache_folder("tier5", name) / "meta.json").read_text())
    found: dict[str, Any] = meta["provider"]
    return found
