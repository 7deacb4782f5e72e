"""A provider's ranked choices from the suite to Tier3's file, in a tiny world with a stand-in."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from evaluation import errors
from evaluation.prefill.tiers import PREFILLS
from evaluation.settings.plan import StagePlan
from tests.providers.conftest import Installed, evaluated
from tests.tables import cases
from tests.workflow.world import World

TASK: dict[str, Any] = {"provider": "lm_eval", "task": "quiz"}

Change = Callable[..., StagePlan]


@pytest.fixture
def change(world: World, installed: Installed) -> Change:
    """Writes the suite's task and what the stand-in does; prefills; returns the plan of stage 2."""

    def write(task: dict[str, Any], **does: Any) -> StagePlan:
        suite = {"extends": "base", "tasks": {"theirs": task}}
        (world.folder / "suites" / "theirs.yaml").write_text(json.dumps(suite))
        world.change_stage("stage2", suites=["theirs"])
        world.change(providers={"lm_eval": str(installed(**does))})
        plan = world.plans["stage2"]
        PREFILLS["tier3"].make(plan, "theirs")
        return plan

    return write


def test_questions_are_the_providers_and_scored_as_any(change: Change) -> None:
    plan = change({**TASK, "primary": "pmi", "limit": 6, "group": "theirs"})
    folder = plan.cache_folder("tier3", "theirs")
    lines = [json.loads(line) for line in (folder / "examples.jsonl").read_text().splitlines()]
    assert [line["id"] for line in lines] == [f"quiz/{number}" for number in range(6)]
    assert [line["gold"] for line in lines] == [0, 1, 2, 0, 1, 2]
    assert [line["stratum"] for line in lines[:2]] == ["things", "words"]
    assert [c["text"] for c in lines[0]["candidates"]] == [" on", " over", " ran"]
    assert lines[1]["contexts"][0]["text"] == "the cat sat"
    meta = json.loads((folder / "meta.json").read_text())
    assert (meta["source"]["name"], meta["source"]["version"]) == ("lm_eval", "0.4.13")
    assert meta["items"]["left_out"] == {"limit": 6}
    found = evaluated(plan, "tier3_cf.json")["tasks"]["theirs"]
    assert (found["group"], found["primary"]) == ("theirs", "pmi")
    assert found["task"]["task"] == "quiz"
    assert 0 <= found["accuracy"] <= 1


@pytest.mark.parametrize(("task", "does", "error", "said"), cases("providers/refused", "choices"))
def test_what_cannot_be_is_one_sentence(
    change: Change, task: dict[str, Any], does: dict[str, Any], error: str, said: str
) -> None:
    with pytest.raises(getattr(errors, error), match=said) as caught:
        change({**TASK, **task, "limit": 7}, **does)
    assert "\n" not in str(caught.value)
