"""Solved examples never hold the question that is asked, whatever the place of its row is called."""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from evaluation.errors import SourceError
from evaluation.prefill.caches import read_prompts, read_task
from evaluation.prefill.items import question_identity, row_identity
from evaluation.prefill.tiers import PREFILLS
from evaluation.settings.plan import StagePlan
from tests.prefill.plans import make_plan
from tests.workflow.world import write_rows

ROWS = [
    {
        "question": f"Who is {number}?",
        "choices": ["a fox", "a dog", "me"],
        "label": number % 3,
        "kind": "odd" if number % 2 else "even",
    }
    for number in range(6)
]
"""The rows that are asked; some of them are also among the rows of solved examples."""

TASK: dict[str, Any] = {
    "choices": "choices",
    "gold": "label",
    "context": "Question: {{ question }}\nAnswer:",
    "num_fewshot": 2,
}

VERIFIED: dict[str, Any] = {
    "prompt": "Question: {{ question }}\nAnswer:",
    "answer": " {{ choices[label] }}",
    "chat": False,
    "max_new_tokens": 4,
    "stop": ["\n"],
    "num_fewshot": 2,
    "document": {"gold": "choices[label]"},
    "verifiers": {"exact": {"kind": "pattern", "pattern": "(a fox|a dog|me)"}},
}


def other_fields(row: dict[str, Any]) -> dict[str, Any]:
    """The same question as another file has it: reordered candidates, more space, another id."""
    choices = [*row["choices"][1:], row["choices"][0]]
    label = choices.index(row["choices"][row["label"]])
    question = row["question"].replace(" ", "  ")
    return {**row, "id": 7, "question": question, "choices": choices, "label": label}


WAYS = ("files", "one file", "another split", "written out")


def plan_of(tmp_path: Path, folder: Path, section: str, way: str, **more: Any) -> StagePlan:
    rows, train = tmp_path / "m/test.jsonl", tmp_path / "m/train.jsonl"
    write_rows(rows, ROWS)
    others = [{**row, "question": f"{row['question']} Why?"} for row in ROWS]
    write_rows(train, [*map(other_fields, ROWS[:3]), *others])
    source: dict[str, Any] = {"dataset": "d", "split": "test"}
    if way == "files":
        source = {"files": [str(rows)], "split": "test"}
    if way == "written out":
        source["fewshot_examples"] = [ROWS[4], *map(other_fields, ROWS)]
    task = (TASK if section == "tasks" else VERIFIED) | source | more
    options: dict[str, Any] = {section: {"t": task}}
    options["mirrors"] = {"d": str(rows if way == "one file" else tmp_path / "m")}
    return make_plan(tmp_path / "cache", folder, sequence_length=400, **options)


def prompts_of(plan: StagePlan) -> tuple[list[list[str]], dict[str, int]]:
    """The questions that each prompt holds, its own last; and counts of replaced examples."""
    if plan.suite.tasks:
        PREFILLS["tier3"].make(plan, "t")
        task = read_task(plan.cache_folder("tier3", "t"))
        texts, meta = [item.contexts[0].text for item in task.items], task.meta
    else:
        PREFILLS["tier5"].make(plan, "t")
        cache = read_prompts(plan.cache_folder("tier5", "t"))
        texts, meta = [prompt.prompt for prompt in cache.prompts], cache.meta
    shown = [
        [" ".join(part.splitlines()[0].split())[10:] for part in text.split("\n\n")]
        for text in texts
    ]
    return shown, meta["solved_examples"]


@pytest.fixture(autouse=True)
def without_golds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaluation.prefill.generation.check_golds", lambda *_, **__: None)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("section", ["tasks", "generation_tasks"])
def test_questions_are_not_their_own_examples(
    way: str, section: str, tmp_path: Path, fast_folder: Path
) -> None:
    if (way, section) == ("written out", "tasks"):
        section = "generation_tasks"
    shown, counts = prompts_of(plan_of(tmp_path, fast_folder, section, way))
    for asked in shown:
        assert len(asked) == 3
        assert Counter(asked)[asked[-1]] == 1
    assert counts["questions"] >= 2
    assert counts["fewer"] == 0


def test_where_no_other_row_is_left_there_is_an_example_less(
    tmp_path: Path, fast_folder: Path
) -> None:
    shown, counts = prompts_of(plan_of(tmp_path, fast_folder, "tasks", "files", num_fewshot=6))
    assert {len(asked) for asked in shown} == {6}
    assert counts == {"questions": 6, "fewer": 6}


def test_identities_ignore_what_makes_no_other_question() -> None:
    assert question_identity(["Who  is\n1?"]) == question_identity([" Who is 1?", "Who is 1?"])
    assert question_identity(["Q"], ["a", "b"]) == question_identity(["Q"], ["b", "a"])
    assert question_identity(["Q"], ["a", "b"]) != question_identity(["Q"], ["a", "c"])
    assert row_identity({"a": 1, "b": None}) == row_identity({"a": 1})
    assert row_identity({"a": 1, "b": "é"}) == row_identity({"b": "é", "a": 1})
    assert row_identity({"a": "1"}) != row_identity({"a": 1})


def test_examples_share_what_is_asked_for(tmp_path: Path, fast_folder: Path) -> None:
    more = {"fewshot_same": "{{ kind }}", "num_fewshot": 3}
    plan = plan_of(tmp_path, fast_folder, "generation_tasks", "another split", **more)
    for number, asked in enumerate(prompts_of(plan)[0]):
        of_kind = [f"Who is {n}" for n in range(number % 2, 6, 2)]
        assert all(question.partition("?")[0] in of_kind for question in asked)
    more["num_fewshot"] = 6
    with pytest.raises(SourceError, match=r"examples share 'even' with their question, not 6"):
        prompts_of(plan_of(tmp_path, fast_folder, "generation_tasks", "another split", **more))


def test_examples_drawn_anew(tmp_path: Path, fast_folder: Path) -> None:
    """As `random.Random.sample` draws them in turn; one that is the question gives way to a later row."""
    more = {"fewshot_seed": 1, "fewshot_anew": True}
    shown, counts = prompts_of(plan_of(tmp_path, fast_folder, "generation_tasks", "files", **more))
    generator, replaced = random.Random(1), 0
    questions = [str(row["question"]) for row in ROWS]
    for found, asked in zip(shown, questions, strict=True):
        drawn = generator.sample(questions, 2)
        others = [one for one in questions if one not in drawn]
        replaced += asked in drawn
        assert found == [*[one for one in (*drawn, *others) if one != asked][:2], asked]
    assert counts == {"questions": replaced, "fewer": 0}
