"""Completions from anywhere, given to a stage's own verifiers; what cannot be judged is one sentence."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from evaluation.errors import CacheError, EvaluationError, ScoringError
from evaluation.grading import by_hand
from evaluation.grading.by_hand import check_verified, verify_by_hand
from evaluation.settings.config import load_config
from evaluation.settings.plan import StagePlan, plan_stages
from tests.workflow.world import ANSWERED, FIRST_LETTER, LAST_LETTER, World, ask_for_answers

TASK: dict[str, Any] = {
    **ANSWERED,
    "max_new_tokens": 6,
    "verifiers": {"strict": FIRST_LETTER, "lenient": LAST_LETTER},
    "stop": ["!"],
    "limit": 3,
}


@pytest.fixture
def plan(world: World) -> StagePlan:
    return ask_for_answers(world, {"sums": TASK})


def ids(plan: StagePlan) -> list[str]:
    lines = (plan.generation_folder("sums") / "docs.jsonl").read_text().splitlines()
    return [json.loads(line)["id"] for line in lines]


def written(tmp_path: Path, rows: list[dict[str, Any]]) -> Path:
    path = tmp_path / "completions.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_verdicts_are_those_of_the_tasks_verifiers(plan: StagePlan, tmp_path: Path) -> None:
    """The gold answer is `a`; what follows a stop is cut off."""
    texts = ["a b", "b a", "b! a"]
    rows = [{"id": id, "completion": text} for id, text in zip(ids(plan), texts, strict=True)]
    judged, summary = verify_by_hand(plan, "sums", written(tmp_path, rows))
    credits = [{k: v["credit"] for k, v in row["verdicts"].items()} for row in judged]
    assert credits == [
        {"strict": 1.0, "lenient": 0.0},
        {"strict": 0.0, "lenient": 1.0},
        {"strict": 0.0, "lenient": 0.0},
    ]
    assert summary["verifiers"]["strict"]["pass_rate"] == pytest.approx(1 / 3)
    assert summary["prompts_without_completion"] == 0


THOUGHT = "<think>b b b</think>\n"


def test_what_follows_the_thinking_is_judged(plan: StagePlan, world: World, tmp_path: Path) -> None:
    """Of all of a completion, `lenient` would find the `b` of the thinking, and `strict` no `a`."""
    path = world.folder / "suites" / "answers.yaml"
    content = yaml.safe_load(path.read_text())
    content["generation_tasks"]["sums"]["answer_after"] = "</think>"
    path.write_text(yaml.safe_dump(content))
    edited = plan_stages(load_config(world.config))["stage2"]
    texts = [f"{THOUGHT}a", f"{THOUGHT}{THOUGHT} b a", "a, and no thinking"]
    rows = [{"id": id, "completion": text} for id, text in zip(ids(plan), texts, strict=True)]
    judged, _ = verify_by_hand(edited, "sums", written(tmp_path, rows))
    assert [row["verdicts"]["strict"]["credit"] for row in judged] == [1.0, 0.0, 1.0]
    assert [row["completion"] for row in judged] == texts


def test_too_many_failed_verdicts_are_an_error_after_all_are_told(plan: StagePlan) -> None:
    failed = {"credit": None, "answer": None, "reason": "out of time"}
    rows = [{"id": "7", "sample": 0, "verdicts": {"strict": failed}}]
    with pytest.raises(ScoringError, match=r"strict: 1 of 1 .* sample 0 of 7: out of time"):
        check_verified(plan, rows)
    passed = {"id": "8", "sample": 0, "verdicts": {"strict": {**failed, "credit": 1.0}}}
    check_verified(plan, [*rows, *[passed] * 99])


def test_a_task_that_was_edited_is_to_be_prefilled_first(
    plan: StagePlan, world: World, tmp_path: Path
) -> None:
    """Else the old gold answers would judge."""
    path = world.folder / "suites" / "answers.yaml"
    content = yaml.safe_load(path.read_text())
    content["generation_tasks"]["sums"]["document"] = {"gold": "'b'"}
    path.write_text(yaml.safe_dump(content))
    edited = plan_stages(load_config(world.config))["stage2"]
    rows = [{"id": id, "completion": "a"} for id in ids(plan)]
    with pytest.raises(CacheError, match=r"made under other settings .* run `snakemake"):
        verify_by_hand(edited, "sums", written(tmp_path, rows))


LINE = '{"id": "ID", "completion": "a"}\n'
BAD = [
    ("a line is cut", LINE + '{"id": "ID", "compl', "line 2: not valid JSON (Unterminated"),
    ("not UTF-8", LINE + "\udcff\n", "line 2: not UTF-8 text"),
    ("no object", '["ID", "a"]\n', "line 1 is no JSON object; write it again"),
    ("no completion", '{"id": "ID"}\n', "line 1: a line needs the texts `id` and `completion`"),
    ("another task", LINE.replace("ID", "other"), "line 1: 'other' is no prompt of the task"),
    ("a sample twice", LINE[:-2] + ', "sample": 0}\n' + LINE[:-2] + ', "sample": 0}\n', "twice"),
    ("a sample that is true", LINE[:-2] + ', "sample": true}\n', "`sample` is True, not a number"),
    ("a sample below 0", LINE[:-2] + ', "sample": -3}\n', "`sample` is -3, not a number"),
    ("nothing", "\n\n", "it holds no completions"),
    ("more of one prompt", LINE * 2 + LINE.replace("ID", "NEXT"), "has 1 completions, and another"),
]


@pytest.mark.parametrize(("text", "said"), [case[1:] for case in BAD], ids=[c[0] for c in BAD])
def test_a_file_that_is_wrong_is_told_before_anything_is_judged(
    plan: StagePlan, text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def judged(*_: object) -> None:
        raise AssertionError("judged")

    monkeypatch.setattr(by_hand, "run_verifiers", judged)
    first, second, _ = ids(plan)
    path = tmp_path / "completions.jsonl"
    content = text.replace("ID", first).replace("NEXT", second)
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(EvaluationError) as raised:
        verify_by_hand(plan, "sums", path)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)
