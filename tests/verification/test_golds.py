"""Golds are checked by their own verifiers before anything is generated; those of the shipped tasks verify.

A quarter of these, all with EVAL_FULL=1.
"""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pydantic import TypeAdapter

from evaluation.errors import SourceError
from evaluation.prefill.task_prompts import PromptRecipe, TaskPrompt
from evaluation.settings.computing import Verification
from evaluation.settings.generation import GenerationTask
from evaluation.settings.suites import load_suite
from evaluation.settings.verifiers import Verifier
from evaluation.verification.golds import check_golds
from tests.conftest import ROOT
from tests.tables import cases, sample

LIMITS = Verification(workers=2)
FEW = Verification(workers=1)
"""For few golds: each worker imports for a second."""


def task(verifier: dict[str, Any]) -> GenerationTask:
    needs: tuple[str, ...] = TypeAdapter(Verifier).validate_python(verifier).NEEDS
    asked = {"files": ["rows.jsonl"], "prompt": "{{ question }}", "chat": False}
    asked |= {"max_new_tokens": 8, "document": {field: field for field in needs}}
    return GenerationTask.model_validate({**asked, "verifiers": {"view": verifier}})


def documents(*values: Any) -> dict[str, dict[str, Any]]:
    """Documents by prompt, of which most hold but their gold answer."""
    held = [value if isinstance(value, dict) else {"gold": value} for value in values]
    return {f"q/{number}": document for number, document in enumerate(held)}


@pytest.mark.parametrize(("verifier", "golds"), cases("verification/verifiers", "accepted_golds"))
def test_golds_that_are_accepted(verifier: dict[str, Any], golds: list[Any]) -> None:
    check_golds("maths", task(verifier), documents(*golds), limits=FEW)


@pytest.mark.parametrize(
    ("verifier", "golds", "named"), cases("verification/verifiers", "refused_golds")
)
def test_golds_that_are_refused(verifier: dict[str, Any], golds: list[Any], named: str) -> None:
    with pytest.raises(SourceError, match=named) as caught:
        check_golds("maths", task(verifier), documents(*golds), limits=FEW)
    assert str(caught.value).startswith("generation_tasks.maths: ")
    assert "\n" not in str(caught.value)


BASE, CHAT = (
    load_suite(ROOT / "task_suites", name).generation_tasks
    for name in ("stage3_verified", "stage4_verified")
)
TASKS: dict[str, Any] = {**BASE, **CHAT}
ROWS = {
    "openai/gsm8k": "gsm8k/main/test",
    "HuggingFaceH4/MATH-500": "MATH-500/default/test",
    "google/IFEval": "IFEval/default/train",
    "allenai/IFBench_test": "IFBench_test/default/train",
    "openai/openai_humaneval": "openai_humaneval/openai_humaneval/test",
}


def rows(shared: Path, name: str) -> list[dict[str, Any]]:
    """Real rows of the task's dataset, or skips."""
    task = TASKS[name]
    place = ROWS.get(task.dataset or "")
    if task.dataset == "google-research-datasets/mbpp":
        place = f"mbpp/{task.config}/test"
    if place is None:
        pytest.skip(f"no rows of {task.dataset} are kept here")
    path = shared / "data/generative" / f"{place}-00000-of-00001.parquet"
    return list(pq.read_table(path).to_pylist())


def prompts(shared: Path, name: str) -> list[TaskPrompt]:
    task = TASKS[name]
    recipe = PromptRecipe(name, task)
    values = recipe.templates.values
    shots = [recipe.solved(values(row)) for row in task.fewshot_examples[: task.num_fewshot]]
    made = enumerate(rows(shared, name))
    return [recipe.item(row, f"{name}/{number}", shots) for number, row in made]


@pytest.mark.parametrize("name", TASKS)
def test_writes_every_row(name: str, shared: Path) -> None:
    made = prompts(shared, name)
    assert len({prompt.id for prompt in made}) == len(made) >= 50
    assert all(isinstance(prompt.turns, str) == (name in BASE) for prompt in made)
    assert all(all(prompt.strata.values()) for prompt in made)


@pytest.mark.parametrize(
    "name",
    "gsm8k_0shot math_500_minerva math_500_boxed ifeval ifbench mbpp mbpp_sanitized humaneval".split(),
)
def test_every_gold_verifies(name: str, shared: Path, nltk_folder: Path) -> None:
    written = sample(4, prompts(shared, name))
    documents = {prompt.id: prompt.document for prompt in written}
    check_golds(name, TASKS[name], documents, limits=LIMITS, nltk_data=nltk_folder)


def test_every_solution_of_math_verifies(shared: Path) -> None:
    """The 5,000 problems have their answer inside of the solution, as these rows do."""
    name = "math_hendrycks_minerva"
    solutions = [row["solution"] for row in sample(4, rows(shared, "math_500_minerva"))]
    check_golds(name, TASKS[name], documents(*solutions), limits=LIMITS)
