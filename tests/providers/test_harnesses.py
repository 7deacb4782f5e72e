"""The providers themselves, where `make providers` has put them."""

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evaluation.errors import ScoringError, SourceError
from evaluation.providers.program import Provider
from evaluation.providers.render import Document, RankedQuestion, Rendered, render
from evaluation.providers.score import CaseLimits, score, verdict_of
from evaluation.settings.provided import VERSIONS, Providers
from tests.conftest import ROOT
from tests.tables import cases

ROWS = 3
LIMITS = CaseLimits(60, 4096)
DATASETS = {
    "openai/gsm8k": "gsm8k",
    "HuggingFaceH4/MATH-500": "MATH-500",
}
GPQA = [
    {
        "Question": f"What is {number} + {number}?",
        "Correct Answer": str(2 * number),
        **{f"Incorrect Answer {n}": str(2 * number + n) for n in (1, 2, 3)},
    }
    for number in range(8)
]
OWN_YAML = """
task: own_sums
dataset_path: own/sums
output_type: generate_until
test_split: test
doc_to_text: "{{question}}"
doc_to_target: "{{answer}}"
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]
"""
OWN_MODULE = """
from lighteval.metrics.metrics import Metrics
from lighteval.tasks.lighteval_task import LightevalTaskConfig
from lighteval.tasks.requests import Doc

def prompt(line, task_name):
    return Doc(task_name=task_name, query=line["question"], choices=[line["answer"]], gold_index=0)

TASKS_TABLE = [LightevalTaskConfig(
    name="own_sums", prompt_function=prompt, hf_repo="own/sums", hf_subset="default",
    evaluation_splits=["test"], metrics=[Metrics.exact_match], generation_size=8,
    stop_sequence=["\\n"],
)]
"""


def provider(name: str) -> Provider:
    python = ROOT / getattr(Providers(), name)
    if not os.access(python, os.X_OK):
        pytest.skip(f"no {python}: `make providers` installs it")
    return Provider(name, python, VERSIONS[name])


@pytest.fixture
def mirrors(tmp_path: Path, shared: Path) -> dict[str, str]:
    """Shared rows, and of two more datasets only the split whose rows are asked."""
    rows = {
        "Idavidrein/gpqa/gpqa_diamond/train": GPQA,
        "own/sums/default/test": [{"question": "2 + 3 =", "answer": "5"}],
    }
    for name, content in rows.items():
        path = tmp_path / f"{name}.parquet"
        path.parent.mkdir(parents=True)
        pq.write_table(pa.Table.from_pylist(content), path)
    named = {name: str(shared / "data/generative" / at) for name, at in DATASETS.items()}
    made = {name: str(tmp_path / name) for name in ("Idavidrein/gpqa", "own/sums")}
    return {"*": str(shared / "data"), **named, **made}


def request(task: str, mirrors: dict[str, str], **asked: Any) -> dict[str, Any]:
    shots = {"chat": False, "num_fewshot": None, "limit": ROWS}
    return {"task": task, "mirrors": mirrors, **shots, **asked}


def prompts(name: str, task: str, mirrors: dict[str, str], **asked: Any) -> Rendered[Document]:
    return render(provider(name), "generation_tasks.x", request(task, mirrors, **asked), Document)


@pytest.mark.parametrize(
    ("name", "task", "metric"),
    [
        ("lm_eval", "gsm8k", "exact_match,strict-match"),
        ("lm_eval", "minerva_math500", "math_verify"),
        ("lighteval", "gsm8k", "extractive_match"),
        ("lighteval", "math_500", "pass@k"),
    ],
)
def test_golds_pass_and_other_answers_do_not(
    name: str, task: str, metric: str, mirrors: dict[str, str]
) -> None:
    documents = prompts(name, task, mirrors).documents
    golds = [
        str(one.gold) if task == "gsm8k" else f"The final answer is $\\boxed{{{one.gold}}}$."
        for one in documents
    ]
    answers = [(one.document, text) for one, text in zip(documents, golds, strict=True)]
    others = [(one.document, "I do not know.") for one in documents]
    outcomes = score(provider(name), {"task": task}, [*answers, *others], LIMITS)
    credits = [verdict_of(metric, outcome, "").credit for outcome in outcomes]
    assert credits == [1.0] * ROWS + [0.0] * ROWS


@pytest.mark.parametrize("name", ["lighteval", "lm_eval"])
def test_prompts_few_shot_and_as_a_chat(name: str, mirrors: dict[str, str]) -> None:
    plain = prompts(name, "gsm8k", mirrors, num_fewshot=2)
    chat = prompts(name, "gsm8k", mirrors, num_fewshot=2, chat=True)
    assert "Question:" in plain.info.stop
    for text, turns in zip(plain.documents, chat.documents, strict=True):
        assert text.prompt is not None
        assert text.prompt.count("Question:") == 3
        assert turns.messages is not None
        assert [turn.role for turn in turns.messages] == ["user", "assistant"] * 2 + ["user"]
        assert text.prompt.startswith(turns.messages[0].content)


@pytest.mark.parametrize(
    ("name", "task"), [("lm_eval", "gpqa_diamond_cot_zeroshot"), ("lighteval", "gpqa:diamond")]
)
def test_shuffled_choices_are_shuffled_alike(name: str, task: str, mirrors: dict[str, str]) -> None:
    first, again = (prompts(name, task, mirrors, limit=8).documents for _ in range(2))
    assert first == again
    assert len({one.gold for one in first}) > 1  # they are shuffled
    for one, row in zip(first, GPQA, strict=True):
        assert row["Correct Answer"] in (one.prompt or "")


def test_solved_examples_leave_the_questions_as_they_are(mirrors: dict[str, str]) -> None:
    task = "gpqa_diamond_zeroshot"
    plain, solved = (
        render(provider("lm_eval"), "tasks.x", asked, RankedQuestion).documents
        for asked in (request(task, mirrors), request(task, mirrors, num_fewshot=2))
    )
    for one, other in zip(plain, solved, strict=True):
        assert other.right == one.right
        assert other.choices[0][0].endswith(one.choices[0][0])
        assert other.choices[0][0].count("Choices:") == 3


@pytest.mark.parametrize(
    ("name", "file", "content", "metric"),
    [
        ("lm_eval", "sums.yaml", OWN_YAML, "exact_match"),
        ("lighteval", "sums.py", OWN_MODULE, "em"),
    ],
)
def test_a_task_of_the_users_own_is_asked_and_judged(
    name: str, file: str, content: str, metric: str, mirrors: dict[str, str], tmp_path: Path
) -> None:
    made = tmp_path / "made" / file
    made.parent.mkdir()
    made.write_text(content)
    path = str(made.parent if name == "lm_eval" else made)
    found = prompts(name, "own_sums", mirrors, include_path=path)
    (one,) = found.documents
    assert (one.prompt, one.gold, found.info.metrics) == ("2 + 3 =", "5", {metric: True})
    (read,) = [read for read in found.info.read if read.kind == "tasks"]
    assert read.dataset == path
    assert read.files is not None
    asked = {"task": "own_sums", "include_path": path, "task_files": found.info.task_files}
    answers = [(one.document, "5"), (one.document, "6")]
    outcomes = score(provider(name), asked, answers, LIMITS)
    assert [(outcome.scores or {})[metric] for outcome in outcomes] == [1, 0]
    made.write_text(content + "\n# another\n")
    with pytest.raises(ScoringError, match="were changed since prefill; run prefill again"):
        score(provider(name), asked, answers, LIMITS)


@pytest.mark.parametrize(
    ("name", "task", "file", "content", "said"), cases("providers/refused", "not_supported")
)
def test_what_is_not_taken_is_refused_in_one_sentence(
    name: str,
    task: str,
    file: str | None,
    content: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    path = None
    if file is not None:
        (tmp_path / file).write_text(content)
        path = str(tmp_path if file.endswith(".yaml") else tmp_path / file)
    with pytest.raises(SourceError, match=said) as caught:
        prompts(name, task, {}, include_path=path)
    assert "\n" not in str(caught.value)
