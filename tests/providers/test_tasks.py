"""A provider's task from the suite to the results, in a tiny world with a stand-in for the provider."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evaluation import errors
from evaluation.checkpoints.subjects import step_subject
from evaluation.prefill.caches import read_prompts
from evaluation.settings.plan import StagePlan
from tests.providers.conftest import Installed, evaluated
from tests.tables import cases
from tests.workflow.world import World, ask_for_answers, want_answers

TASK: dict[str, Any] = {"provider": "lm_eval", "task": "sums"}

Change = Callable[..., StagePlan]


@pytest.fixture
def change(world: World, installed: Installed) -> Change:
    """Writes the suite's task and what the stand-in does; prefills; returns the plan of stage 2."""

    def write(task: dict[str, Any], *, prefill: bool = True, **does: Any) -> StagePlan:
        give = ask_for_answers if prefill else want_answers
        return give(world, {"sums": task}, providers={"lm_eval": str(installed(**does))})

    return write


def run(plan: StagePlan) -> dict[str, Any]:
    """Scores and collects a step; the task's part of Tier5's file."""
    task: dict[str, Any] = evaluated(plan, "tier5_verified.json")["generation_tasks"]["sums"]
    return task


def test_what_the_provider_says_is_taken_and_recorded(change: Change) -> None:
    plan = change(TASK)
    folder = plan.cache_folder("tier5", "sums")
    said = json.loads((folder / "meta.json").read_text())["provider"]
    assert (said["name"], said["version"]) == ("lm_eval", "0.4.13")
    assert (said["stop"], said["max_new_tokens"]) == (["Question:"], 6)
    assert said["metrics"] == ["exact", "shares"]  # of `length`, less is better
    prompts = read_prompts(folder).prompts
    assert [prompt.id for prompt in prompts] == [f"sums/{number}" for number in range(12)]
    assert prompts[0].prompt == "Q: the A:"
    found = run(plan)
    assert found["decoding"]["stop"] == ["Question:"]
    assert found["decoding"]["max_new_tokens"] == 6
    assert (found["prompts"], found["primary"]) == (12, "exact")
    assert set(found["verifiers"]) == {"exact", "shares"}
    assert found["views"]["exact"]["version"] == "0.4.13"
    folder = step_subject(plan, 5).folder / "generation" / "sums"
    rows = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    for row in rows:
        right = row["completion"].strip()[:1] == "a"
        assert row["verdicts"]["exact"]["credit"] == float(right)
        assert row["verdicts"]["shares"]["credit"] == (1 + right) / 2


def test_what_is_given_in_the_suite_comes_first(change: Change) -> None:
    own = {"stop": ["the"], "max_new_tokens": 3, "metrics": ["shares"], "limit": 4, "chat": True}
    plan = change({**TASK, **own, "sampling": {"temperature": 1.0, "n": 3, "seed": 1}})
    found = run(plan)
    assert found["decoding"]["stop"] == ["the"]
    assert found["decoding"]["max_new_tokens"] == 3
    assert (found["prompts"], found["samples"]) == (4, 12)
    assert list(found["verifiers"]) == ["shares"]
    assert set(found["verifiers"]["shares"]["pass_at_k"]) == {"1", "2", "3"}
    assert found["items"]["left_out"] == {"limit": 8}
    (asked, *_) = read_prompts(plan.cache_folder("tier5", "sums")).prompts
    assert asked.prompt == "user: Q: the A:\nassistant: "


def test_verdicts_are_kept_and_asked_once(change: Change, tmp_path: Path) -> None:
    count = tmp_path / "count"
    plan = change(TASK)
    change(TASK, count=str(count))
    first = run(plan)
    assert count.read_text() == "once\n"
    again = run(change({**TASK, "primary": "shares", "group": "maths"}, count=str(count)))
    assert again["primary"] == "shares"
    assert again["verifiers"] == first["verifiers"]
    assert count.read_text() == "once\n"


@pytest.mark.parametrize(("task", "does", "error", "said"), cases("providers/refused", "tasks"))
def test_what_cannot_be_is_one_sentence(
    change: Change, task: dict[str, Any], does: dict[str, Any], error: str, said: str
) -> None:
    with pytest.raises(getattr(errors, error), match=said) as caught:
        change({**TASK, **task}, **does)
    assert "\n" not in str(caught.value)
