"""Answers that a new protocol may grade again are not generated again."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from evaluation.checkpoints.subjects import step_subject
from evaluation.dependencies.making import make
from evaluation.dependencies.steps import COLLECT, SCORE
from evaluation.scoring.engine.backend import EngineBackend
from evaluation.settings import tiers
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS
from tests.workflow.world import ANSWERED, FIRST_LETTER, World, ask_for_answers

TASK: dict[str, Any] = {
    **ANSWERED,
    "max_new_tokens": 6,
    "verifiers": {"strict": FIRST_LETTER},
    "limit": 6,
}


def texts(plan: StagePlan) -> list[str]:
    """The stored texts of all answers, once they are collected."""
    subject = step_subject(plan, 5)
    assert make(SCORE, subject).error is None
    assert make(COLLECT, subject).error is None
    path: Path = subject.folder / "generation/sums/completions.jsonl"
    return [json.loads(line)["completion"] for line in path.read_text().splitlines()]


def generate(*_: Any, **__: Any) -> Any:
    raise AssertionError("an answer was generated")


@pytest.mark.parametrize("same", [("tier5-8",), ("tier5-9", "tier5-8")])
def test_answers_of_an_earlier_protocol_are_verified_anew(
    world: World, monkeypatch: pytest.MonkeyPatch, same: tuple[str, ...]
) -> None:
    tier = TIERS["tier5"]
    former = dataclasses.replace(tier, protocol="tier5-8", stored=None)
    monkeypatch.setitem(tiers.TIERS, "tier5", former)
    before = texts(ask_for_answers(world, {"sums": TASK}))
    now = dataclasses.replace(tier, protocol="tier5-10", stored=same[-1])
    monkeypatch.setitem(tiers.TIERS, "tier5", now)
    monkeypatch.setattr(EngineBackend, "answers", generate)
    plan = ask_for_answers(world, {"sums": TASK})
    assert texts(plan) == before
    result = json.loads((step_subject(plan, 5).folder / "tier5_verified.json").read_text())
    assert result["protocol"] == "tier5-10"
