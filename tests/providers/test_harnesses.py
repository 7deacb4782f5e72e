"""The providers themselves, where `make providers` has put them."""

import os
from collections.abc import Mapping
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
from evaluation.verification.pool import VerifierJob, verify_all
from tests.conftest import ROOT
from tests.tables import cases
from tests.verification import canned
from tests.verification.make_references import FILES, MAKERS
from tests.verification.test_references import KNOWN, VERIFIERS, document

ROWS = 3
LIMITS = CaseLimits(60, 4096)
DATASETS = {
    "openai/gsm8k": "gsm8k",
    "HuggingFaceH4/MATH-500": "MATH-500",
    "google/IFEval": "IFEval",
    "allenai/IFBench_test": "IFBench_test",
}
LEVELS = {
    f"{level}_{mode}_acc": f"{ours}_{mode}"
    for level, ours in (("prompt_level", "prompt"), ("inst_level", "instruction"))
    for mode in ("strict", "loose")
}
MATH = {"extractive_match": "extractive_match", "pass@k": "extractive_match"}
GSM8K = {
    "exact_match,strict-match": "strict-match",
    "exact_match,flexible-extract": "flexible-extract",
}
MINERVA = {"exact_match": "exact_match", "math_verify": "math_verify"}
PAIRS: list[tuple[str, str, str, Mapping[str, str]]] = [
    ("lm_eval", "gsm8k", "gsm8k", GSM8K),
    ("lm_eval", "minerva_math500", "math_500", MINERVA),
    ("lm_eval", "ifeval", "ifeval", LEVELS),
    ("lighteval", "gsm8k", "gsm8k", MATH),
    ("lighteval", "math_500", "math_500", MATH),
    ("lighteval", "ifeval", "ifeval", LEVELS),
    ("lighteval", "ifbench_test", "ifbench", LEVELS),
]
"""Provider, task there, task here, and our name of each metric."""
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


def provider(name: str, nltk_data: Path | None = None) -> Provider:
    python = ROOT / getattr(Providers(), name)
    if not os.access(python, os.X_OK):
        pytest.skip(f"no {python}: `make providers` installs it")
    return Provider(name, python, VERSIONS[name], nltk_data)


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


def choices(name: str, task: str, mirrors: dict[str, str], **asked: Any) -> list[RankedQuestion]:
    asked = request(task, mirrors, **asked)
    return render(provider(name), "tasks.x", asked, RankedQuestion).documents


@pytest.mark.parametrize(("name", "task", "ours", "metrics"), PAIRS)
def test_verdicts_are_those_of_our_verifiers(
    name: str,
    task: str,
    ours: str,
    metrics: Mapping[str, str],
    mirrors: dict[str, str],
    shared: Path,
    nltk_folder: Path,
) -> None:
    documents = prompts(name, task, mirrors).documents
    rows = pq.read_table(shared / "data/generative" / FILES[ours]).to_pylist()[: ROWS + 1]
    asked = [
        (row, documents[number].document, said, text)
        for number, row, said, text in canned.cases(rows, MAKERS[ours], pairs=ours == "math_500")
        if number < ROWS
    ]
    assert len(asked) > 50
    theirs = [(one, text) for _, one, _, text in asked]
    outcomes = score(provider(name, nltk_folder), {"task": task}, theirs, LIMITS)
    given = set(outcomes[0].scores or {})
    assert given <= set(metrics)
    for metric in sorted(given):
        verifier = VERIFIERS[ours][metrics[metric]]
        jobs: list[VerifierJob] = [
            (verifier, document(ours, row), text) for row, _, _, text in asked
        ]
        mine = dict(verify_all(jobs, workers=1, seconds=60, nltk_data=nltk_folder))
        known = KNOWN.get((name, ours, metrics[metric]), set())
        for number, (_, _, said, text) in enumerate(asked):
            verdict = verdict_of(metric, outcomes[number], text)
            if said not in known:
                expected = (mine[number].credit, mine[number].weight)
                assert (verdict.credit, verdict.weight) == pytest.approx(expected), (metric, said)


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


@pytest.mark.parametrize(("name", "task"), [("lm_eval", "arc_easy"), ("lighteval", "arc:easy")])
def test_ranked_choices_are_the_rows_of_the_dataset(
    name: str, task: str, mirrors: dict[str, str], shared: Path
) -> None:
    found = choices(name, task, mirrors, num_fewshot=0)
    rows = pq.read_table(shared / "data/allenai/ai2_arc/ARC-Easy/test.parquet").to_pylist()
    assert len(found) == ROWS
    for one, row in zip(found, rows, strict=False):
        assert one.choices[0][0] == f"Question: {row['question']}\nAnswer:"
        assert [text.strip() for _, text in one.choices] == row["choices"]["text"]
        assert row["choices"]["label"][one.right] == row["answerKey"]


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
    plain = choices("lm_eval", "gpqa_diamond_zeroshot", mirrors)
    solved = choices("lm_eval", "gpqa_diamond_zeroshot", mirrors, num_fewshot=2)
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


@pytest.mark.parametrize(("name", "task", "said"), cases("providers/refused", "not_supported"))
def test_what_is_not_taken_is_refused_by_name(
    name: str, task: str, said: str, mirrors: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(SourceError, match=said) as caught:
        prompts(name, task, mirrors)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "file", "content", "said"), cases("providers/refused", "task_files")
)
def test_task_files_that_cannot_be_used_are_one_sentence(
    name: str, file: str, content: str | None, said: str, tmp_path: Path
) -> None:
    path = tmp_path / file
    if content is not None:
        path.write_text(content)
    place = tmp_path if file == "sums.yaml" else path
    with pytest.raises(SourceError, match=said) as caught:
        prompts(name, "own_sums", {}, include_path=str(place))
    assert "\n" not in str(caught.value)
