"""The order in which settings stand: content where things are computed or chosen in order."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from evaluation.checkpoints.subjects import step_subject
from evaluation.dependencies.steps import collect_key, score_key
from evaluation.errors import ConfigError
from evaluation.prefill.definitions import asked_definition, generation_definition, task_definition
from evaluation.records import Record
from evaluation.settings.config import validate_config
from evaluation.settings.plan import StagePlan, plan_stages

FIRST, SECOND = {"a": "b", "b": "question"}, {"b": "question", "a": "b"}
SEEN = {"kind": "pattern", "pattern": "x"}
TASK = {"dataset": "a/b", "choices": "choices", "gold": "label", "context": "{{ a }}", "let": FIRST}
ANSWERED = {
    "dataset": "a/b",
    "prompt": "{{ a }}",
    "chat": False,
    "max_new_tokens": 4,
    "let": FIRST,
    "document": {"gold": "a"},
    "strata": {"level": "{{ a }}", "subject": "{{ b }}"},
    "verifiers": {"strict": SEEN, "lenient": SEEN},
}
ABOUT = {"fingerprint": "f", "prepend_bos": False, "name": "t", "class": "C"}
ABOUT |= {"vocab_size": 9, "bos_token_id": None, "eos_token_id": 0}


def plans(folder: Path, **suites: dict[str, Any]) -> dict[str, StagePlan]:
    """A stage for each suite, all with one cache."""
    for name, suite in suites.items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(suite, sort_keys=False))
    config = {
        "results": "results",
        "cache": "cache",
        "suites": str(folder),
        "tokenizer": {"name": "org/tok"},
        "sequence_length": 64,
        "stages": {
            name: {"checkpoints": "ckpts", "steps": [5], "suites": [name]} for name in suites
        },
    }
    return plan_stages(validate_config(config, "mine.yaml"))


def suite(**changes: Any) -> dict[str, Any]:
    own = {key: {**ANSWERED, key: value} for key, value in changes.items() if key in ANSWERED}
    task = {**TASK, **{key: value for key, value in changes.items() if key in TASK}}
    return {
        "tasks": {"quiz": task},
        "generation_tasks": {"sums": next(iter(own.values()), ANSWERED)},
    }


def keys(plan: StagePlan) -> dict[str, str]:
    subject, score = step_subject(plan, 5), Record(key="score")
    return {
        "questions": task_definition(plan, "quiz", ABOUT),
        "prompts": asked_definition(plan, "sums", ABOUT),
        "documents": generation_definition(plan, "sums", ABOUT),
        "score": score_key(subject),
        "collect": collect_key(subject, score),
    }


def swapped(mapping: dict[str, Any]) -> dict[str, Any]:
    return dict(reversed(mapping.items()))


@pytest.mark.parametrize(
    ("changes", "others"),
    [
        ({}, set()),
        ({"let": SECOND}, {"questions", "prompts", "documents", "collect"}),
        ({"strata": swapped(ANSWERED["strata"])}, {"documents", "collect"}),
        ({"verifiers": swapped(ANSWERED["verifiers"])}, {"collect"}),
    ],
)
def test_what_is_computed_or_chosen_in_order(
    tmp_path: Path, changes: dict[str, Any], others: set[str]
) -> None:
    before = keys(plans(tmp_path, one=suite())["one"])
    after = keys(plans(tmp_path, one=suite(**changes))["one"])
    assert {name for name, key in after.items() if key != before[name]} == others


def test_where_thinking_ends_grades_again_and_asks_nothing_again(tmp_path: Path) -> None:
    probe = {"category": "chat", "messages": [{"role": "user", "content": "Hi"}]}
    asked = {"probes": {"greeting": {**probe, "checks": [{"check": "complies"}]}}, **suite()}
    before = keys(plans(tmp_path, one=asked)["one"])
    after = keys(plans(tmp_path, one={**asked, "answer_after": "</think>"})["one"])
    assert {name for name, key in after.items() if key != before[name]} == {"collect"}


def test_the_order_of_items_and_of_their_keys_scores_nothing_again(tmp_path: Path) -> None:
    items = {"quiz": TASK, "riddles": TASK}
    turned = swapped({name: swapped(task) for name, task in items.items()})
    before, after = (
        keys(plans(tmp_path, one={**suite(), "tasks": tasks})["one"]) for tasks in (items, turned)
    )
    assert {name for name, key in after.items() if key != before[name]} == {"collect"}


def test_one_name_for_two_orders_in_one_cache_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'quiz' is defined differently in the suites of one and"):
        plans(tmp_path, one=suite(), two=suite(let=SECOND))
