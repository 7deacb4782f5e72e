"""Solved examples never hold the question that is asked, whatever the place of its row is called."""

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from evaluation.errors import SourceError
from evaluation.metrics.layout import joined
from evaluation.prefill.caches import read_documents, read_prompts, read_questions, read_task
from evaluation.prefill.cloze import prefill_task
from evaluation.prefill.generation import prefill_generation_task
from evaluation.prefill.row_identity import question_identity, row_identity
from evaluation.settings.plan import StagePlan
from tests.prefill.plans import make_plan
from tests.workflow.world import write_rows

ROWS = [
    {"question": f"Who is {number}?", "choices": ["a fox", "a dog", "me"], "label": number % 3}
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
    return {"id": 7, "question": question, "choices": choices, "label": label}


def named(tmp_path: Path, way: str) -> tuple[dict[str, Any], dict[str, str]]:
    """The keys that name rows and examples, and the mirrors."""
    rows, train = tmp_path / "m/test.jsonl", tmp_path / "m/train.jsonl"
    write_rows(rows, ROWS)
    write_rows(
        train,
        [*map(other_fields, ROWS[:3]), *({**r, "question": f"{r['question']} Why?"} for r in ROWS)],
    )
    mirror = {"d": str(tmp_path / "m")}
    if way == "files":
        return {"files": [str(rows)], "split": "test"}, {}
    if way == "one file":
        return {"dataset": "d", "split": "test"}, {"d": str(rows)}
    if way == "data_files":
        return {"dataset": "d", "split": "test", "data_files": ["test.jsonl"]}, mirror
    if way == "another split":
        return {"dataset": "d", "split": "test"}, mirror
    given = json.loads(json.dumps([ROWS[4], *map(other_fields, ROWS)]))
    return {"dataset": "d", "split": "test", "fewshot_examples": given}, mirror


def plan_of(tmp_path: Path, folder: Path, section: str, way: str, **more: Any) -> StagePlan:
    source, mirrors = named(tmp_path, way)
    task = (TASK if section == "tasks" else VERIFIED) | source | more
    options: dict[str, Any] = {section: {"t": task}}
    return make_plan(tmp_path / "cache", folder, mirrors=mirrors, sequence_length=256, **options)


def check_shots(text: str, number: int = 2) -> None:
    """Each prompt has the examples that are configured, all distinct from the question."""
    *examples, question = text.split("\n\n")
    asked = [" ".join(part.splitlines()[0].split()) for part in (*examples, question)]
    assert Counter(asked)[asked[-1]] == 1
    assert len(examples) == number
    assert all(":" in part.splitlines()[-1] for part in examples)


@pytest.fixture
def without_golds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaluation.prefill.generation.check_golds", lambda *_, **__: None)


@pytest.mark.parametrize("way", ["files", "one file", "data_files", "another split"])
def test_ranked_questions_are_not_their_own_examples(
    way: str, tmp_path: Path, fast_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    plan = plan_of(tmp_path, fast_folder, "tasks", way)
    prefill_task(plan, "t")
    cache = read_task(plan.cache_folder("tier3", "t"))
    for item in cache.items:
        check_shots(item.contexts[0].text)
    assert cache.meta["solved_examples"] == {"questions": 2, "fewer": 0}
    assert "are themselves among the rows of solved examples" in caplog.text


@pytest.mark.parametrize("way", ["files", "one file", "data_files", "another split", "written out"])
@pytest.mark.usefixtures("without_golds")
def test_prompts_are_not_their_own_examples(way: str, tmp_path: Path, fast_folder: Path) -> None:
    plan = plan_of(tmp_path, fast_folder, "generation_tasks", way)
    prefill_generation_task(plan, "t")
    cache = read_prompts(plan.cache_folder("tier5", "t"))
    for prompt in cache.prompts:
        check_shots(prompt.prompt)
    assert cache.meta["solved_examples"]["questions"] >= 2
    assert cache.meta["solved_examples"]["fewer"] == 0


def test_where_no_other_row_is_left_there_is_an_example_less(
    tmp_path: Path, fast_folder: Path
) -> None:
    plan = plan_of(tmp_path, fast_folder, "tasks", "files", num_fewshot=6)
    prefill_task(plan, "t")
    cache = read_task(plan.cache_folder("tier3", "t"))
    for item in cache.items:
        check_shots(item.contexts[0].text, 5)
    assert cache.meta["solved_examples"] == {"questions": 6, "fewer": 6}


@pytest.mark.usefixtures("without_golds")
def test_lines_tell_which_questions_tasks_share(tmp_path: Path, fast_folder: Path) -> None:
    """The same rows under two templates, in two tiers, and in two files with other fields."""
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    write_rows(first, ROWS)
    write_rows(second, [*map(other_fields, reversed(ROWS[1:])), ROWS[0] | {"question": "New?"}])
    zero = TASK | {"num_fewshot": 0}
    tasks = {
        "a": zero | {"files": [str(first)]},
        "letters": zero | {"files": [str(first)], "context": "{{ question }}\nA:"},
        "b": zero | {"files": [str(second)]},
    }
    generated = {
        "g": VERIFIED | {"files": [str(first)], "num_fewshot": 0, "prompt": "{{ question }}"}
    }
    plan = make_plan(
        tmp_path / "cache",
        fast_folder,
        sequence_length=256,
        tasks=tasks,
        generation_tasks=generated,
    )
    lines = []
    for name in tasks:
        prefill_task(plan, name)
        lines += read_questions(plan.cache_folder("tier3", name))[0]
    prefill_generation_task(plan, "g")
    lines += read_documents(plan.cache_folder("tier5", "g")).values()
    columns = [line.question for line in lines], [line.row for line in lines]
    assert joined(len(lines), columns).tolist() == [
        *range(6),
        *range(6),
        *(5, 4, 3, 2, 1, 6),
        *range(6),
    ]


def test_identities_ignore_what_makes_no_other_question() -> None:
    assert question_identity(["Who  is\n1?"]) == question_identity([" Who is 1?", "Who is 1?"])
    assert question_identity(["Q"], ["a", "b"]) == question_identity(["Q"], ["b", "a"])
    assert question_identity(["Q"], ["a", "b"]) != question_identity(["Q"], ["a", "c"])
    assert question_identity(["who is 1?"]) != question_identity(["Who is 1?"])
    assert row_identity({"a": 1, "b": None}) == row_identity({"a": 1})
    assert row_identity({"a": 1, "b": "é"}) == row_identity({"b": "é", "a": 1})
    assert row_identity({"a": "1"}) != row_identity({"a": 1})


def test_source_rows_are_joined_by_way_of_others() -> None:
    columns = ["a", "b", "c", "a", None, None], [None, "x", "y", "y", None, None]
    assert joined(6, columns).tolist() == [0, 1, 0, 0, 2, 3]


def of_kinds(tmp_path: Path, fast_folder: Path, number: int) -> StagePlan:
    """A task whose examples are of the question's kind, of which there are three each."""
    rows = [{**row, "kind": "odd" if index % 2 else "even"} for index, row in enumerate(ROWS)]
    write_rows(tmp_path / "m/test.jsonl", rows)
    write_rows(
        tmp_path / "m/train.jsonl", [{**r, "question": f"{r['question']} Why?"} for r in rows]
    )
    task = {**VERIFIED, "dataset": "d", "split": "test", "fewshot_same": "{{ kind }}"}
    return make_plan(
        tmp_path / "cache",
        fast_folder,
        mirrors={"d": str(tmp_path / "m")},
        sequence_length=400,
        generation_tasks={"x": {**task, "num_fewshot": number}},
    )


@pytest.mark.usefixtures("without_golds")
def test_examples_share_what_is_asked_for(tmp_path: Path, fast_folder: Path) -> None:
    plan = of_kinds(tmp_path, fast_folder, 3)
    prefill_generation_task(plan, "x")
    prompts = (plan.cache_folder("tier5", "x") / "prompts.jsonl").read_text().splitlines()
    for number, line in enumerate(prompts):
        *examples, _ = json.loads(line)["prompt"].split("\n\n")
        kind = [f"Who is {other}? Why?" for other in range(number % 2, 6, 2)]
        assert [text.split("\n")[0].removeprefix("Question: ") for text in examples] == kind


def test_too_few_examples_share_it(tmp_path: Path, fast_folder: Path) -> None:
    with pytest.raises(SourceError, match=r"only 3 share 'even' with their question, not 4; lower"):
        prefill_generation_task(of_kinds(tmp_path, fast_folder, 4), "x")


@pytest.mark.usefixtures("without_golds")
@pytest.mark.parametrize("way", ["files", "another split"])
def test_examples_drawn_anew(way: str, tmp_path: Path, fast_folder: Path) -> None:
    """As `random.Random.sample` draws them in turn; one that is the question gives way to a later row."""
    more = {"fewshot_seed": 1, "fewshot_anew": True}
    plan = plan_of(tmp_path, fast_folder, "generation_tasks", way, **more)
    prefill_generation_task(plan, "t")
    generator = random.Random(1)
    questions = [str(row["question"]) for row in ROWS]
    more_rows = [*questions[:3], *(f"{one} Why?" for one in questions)]
    texts = questions if way == "files" else more_rows
    cache, replaced = read_prompts(plan.cache_folder("tier5", "t")), 0
    for prompt, asked in zip(cache.prompts, questions, strict=True):
        drawn = generator.sample(texts, 2)
        others = [one for one in texts if one not in drawn]
        examples = [one for one in (*drawn, *others) if one != asked][:2]
        replaced += asked in drawn
        shown = [" ".join(part.splitlines()[0].split()) for part in prompt.prompt.split("\n\n")]
        assert shown == [f"Question: {one}" for one in (*examples, asked)]
    assert cache.meta["solved_examples"] == {"questions": replaced, "fewer": 0}
    assert replaced
