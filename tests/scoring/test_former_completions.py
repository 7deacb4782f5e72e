"""Completions whose text earlier versions read otherwise are read anew from their ids."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from evaluation import protocol
from evaluation.checkpoints.subjects import step_subject
from evaluation.dependencies.making import make
from evaluation.dependencies.steps import COLLECT, SCORE
from evaluation.scoring.engine.backend import EngineBackend
from evaluation.settings import tiers
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS
from evaluation.tokenizers.fast import FastTokenizer
from tests.workflow.world import ANSWERED, FIRST_LETTER, World, ask_for_answers

TASK: dict[str, Any] = {
    **ANSWERED,
    "max_new_tokens": 6,
    "verifiers": {"strict": FIRST_LETTER},
    "limit": 6,
}


def _other(text: str) -> str:
    """What another way of reading ids could make of a text."""
    return text.replace(":", ";")  # the model writes nothing else


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
    former = dataclasses.replace(tier, protocol="tier5-8", same_answers=())
    monkeypatch.setitem(tiers.TIERS, "tier5", former)
    before = texts(ask_for_answers(world, {"sums": TASK}))
    now = dataclasses.replace(tier, protocol="tier5-10", same_answers=same)
    monkeypatch.setitem(tiers.TIERS, "tier5", now)
    monkeypatch.setattr(EngineBackend, "answers", generate)
    plan = ask_for_answers(world, {"sums": TASK})
    assert texts(plan) == before
    result = json.loads((step_subject(plan, 5).folder / "tier5_verified.json").read_text())
    assert result["protocol"] == "tier5-10"


def test_text_is_read_anew_and_nothing_is_generated(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = texts(ask_for_answers(world, {"sums": TASK}))
    plain = FastTokenizer.decode
    monkeypatch.setattr(FastTokenizer, "decodes_anywhere", False)
    monkeypatch.setattr(FastTokenizer, "decode", lambda self, ids: _other(plain(self, ids)))
    monkeypatch.setattr(protocol, "PREFILL_TOKENIZER", "another")

    monkeypatch.setattr(EngineBackend, "answers", generate)
    plan = ask_for_answers(world, {"sums": TASK})
    assert texts(plan) == [_other(text) for text in before] != before
    assert texts(plan) == [_other(text) for text in before]
    stopped = ask_for_answers(world, {"sums": {**TASK, "stop": [_other(before[0])[:2]]}})
    assert texts(stopped)[0] == ""
