"""The providers' exams: drawn alike every time, from a user's files too, or refused in a true sentence."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evaluation.errors import ScoringError, SourceError
from evaluation.providers.render import Document, RankedQuestion, Rendered, render
from evaluation.providers.score import CaseLimits, score
from tests.providers.test_real import provider
from tests.tables import cases

ROWS = 8
GPQA = [
    {
        "Question": f"What is {number} + {number}?",
        "Correct Answer": str(2 * number),
        **{f"Incorrect Answer {n}": str(2 * number + n) for n in (1, 2, 3)},
    }
    for number in range(ROWS)
]
HELLASWAG: list[dict[str, Any]] = [
    {
        "activity_label": "Cooking",
        "ctx": "A man cooks",
        "ctx_a": "A man",
        "ctx_b": "cooks",
        "endings": ["an egg", "a car", "a sea", "a day"],
        "label": str(number % 4),
    }
    for number in range(ROWS)
]
LAMBADA = [{"text": "The man went home to his dog"}] * ROWS
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


@pytest.fixture
def mirrors(tmp_path: Path) -> dict[str, str]:
    """Of each dataset only the split whose rows are asked."""
    rows = {
        "Idavidrein/gpqa/gpqa_diamond/train": GPQA,
        "Rowan/hellaswag/default/validation": HELLASWAG,
        "EleutherAI/lambada_openai/default/test": LAMBADA,
        "cimec/lambada/plain_text/test": LAMBADA,
        "own/sums/default/test": [{"question": "2 + 3 =", "answer": "5"}],
    }
    for name, content in rows.items():
        path = tmp_path / "mirrors" / f"{name}.parquet"
        path.parent.mkdir(parents=True)
        pq.write_table(pa.Table.from_pylist(content), path)
    return {"*": str(tmp_path / "mirrors")}


def request(task: str, mirrors: dict[str, str], **asked: Any) -> dict[str, Any]:
    return {"task": task, "chat": False, "num_fewshot": 0, "limit": 99, "mirrors": mirrors, **asked}


def exam(name: str, task: str, mirrors: dict[str, str], **asked: Any) -> Rendered[Document]:
    return render(provider(name), "generation_tasks.x", request(task, mirrors, **asked), Document)


def ranked(name: str, task: str, mirrors: dict[str, str], **asked: Any) -> Rendered[RankedQuestion]:
    return render(provider(name), "tasks.x", request(task, mirrors, **asked), RankedQuestion)


@pytest.mark.parametrize(
    ("name", "task"), [("lm_eval", "gpqa_diamond_cot_zeroshot"), ("lighteval", "gpqa:diamond")]
)
def test_choices_that_are_shuffled_are_shuffled_alike(
    name: str, task: str, mirrors: dict[str, str]
) -> None:
    first, again = (exam(name, task, mirrors).documents for _ in range(2))
    assert first == again
    assert len({one.gold for one in first}) > 1  # they are shuffled
    for one, row in zip(first, GPQA, strict=True):
        assert row["Correct Answer"] in (one.prompt or "")


def test_solved_examples_leave_the_questions_as_they_are(mirrors: dict[str, str]) -> None:
    plain = ranked("lm_eval", "gpqa_diamond_zeroshot", mirrors).documents
    solved = ranked("lm_eval", "gpqa_diamond_zeroshot", mirrors, num_fewshot=2).documents
    for one, other in zip(plain, solved, strict=True):
        assert other.right == one.right
        assert other.choices[0][0].endswith(one.choices[0][0])
        assert other.choices[0][0].count("Choices:") == 3


def test_splits_of_solved_examples_are_read_where_there_are_any(mirrors: dict[str, str]) -> None:
    found = ranked("lm_eval", "hellaswag", mirrors)
    assert [one.right for one in found.documents] == [number % 4 for number in range(ROWS)]
    with pytest.raises(SourceError, match="has no split 'train', only validation; add it"):
        ranked("lm_eval", "hellaswag", mirrors, num_fewshot=1)


@pytest.mark.parametrize(
    ("name", "task"), [("lm_eval", "lambada_openai"), ("lighteval", "lambada:standard")]
)
@pytest.mark.parametrize("ask", [exam, ranked])
def test_one_given_continuation_is_refused_wherever_it_stands(
    ask: Any, name: str, task: str, mirrors: dict[str, str]
) -> None:
    said = f"{task} of .* is not supported, as it scores one given continuation"
    with pytest.raises(SourceError, match=said):
        ask(name, task, mirrors)


@pytest.fixture
def own(tmp_path: Path) -> dict[str, Path]:
    """A user's task for each provider."""
    folder, module = tmp_path / "own", tmp_path / "own.py"
    folder.mkdir()
    (folder / "sums.yaml").write_text(OWN_YAML)
    module.write_text(OWN_MODULE)
    return {"lm_eval": folder, "lighteval": module}


@pytest.mark.parametrize(("name", "metric"), [("lm_eval", "exact_match"), ("lighteval", "em")])
def test_a_task_of_the_users_own_is_asked_and_judged(
    name: str, metric: str, own: dict[str, Path], mirrors: dict[str, str]
) -> None:
    path = str(own[name])
    found = exam(name, "own_sums", mirrors, include_path=path)
    (one,) = found.documents
    assert (one.prompt, one.gold, found.info.metrics) == ("2 + 3 =", "5", {metric: True})
    (read,) = [read for read in found.info.read if read.kind == "tasks"]
    assert read.dataset == path
    assert read.files is not None
    asked = {"task": "own_sums", "include_path": path, "task_files": found.info.task_files}
    cases = [(one.document, "5"), (one.document, "6")]
    outcomes = score(provider(name), asked, cases, CaseLimits(60, 4096))
    assert [(outcome.scores or {})[metric] for outcome in outcomes] == [1, 0]
    file = own[name] / "sums.yaml" if name == "lm_eval" else own[name]
    file.write_text(file.read_text() + "\n# another\n")
    with pytest.raises(ScoringError, match="were changed since prefill; run prefill again"):
        score(provider(name), asked, cases, CaseLimits(60, 4096))


@pytest.mark.parametrize(
    ("name", "file", "content", "said"), cases("providers/refused", "task_files")
)
def test_task_files_that_cannot_be_used_are_one_sentence(
    name: str, file: str, content: str | None, said: str, tmp_path: Path
) -> None:
    path = tmp_path / "files" / file
    path.parent.mkdir()
    if content is not None:
        path.write_text(content)
    place = path.parent if file == "sums.yaml" else path
    with pytest.raises(SourceError, match=said) as caught:
        exam(name, "own_sums", {}, include_path=str(place))
    assert "\n" not in str(caught.value)
