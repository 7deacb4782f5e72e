"""Groups of prompts that vary together: by a suite's template, or as known of a provider's task."""

from typing import Any

import pytest

from evaluation.prefill.provided import clusters_of
from evaluation.prefill.task_prompts import PromptRecipe
from evaluation.settings.generation import GenerationTask
from evaluation.settings.provided import ProviderTask
from tests.bridge.answers import TASK

PASSAGE = "The river Rhine rises in Switzerland."


@pytest.mark.parametrize(
    ("task", "document", "cluster"),
    [
        ("drop", {"passage": PASSAGE, "question": "Where?"}, PASSAGE),
        ("drop:own", {"metadata": {"passage_id": 7}}, "7"),
        ("gsm_symbolic", {"original_id": 12, "instance": 3}, "12"),
        ("gsm_symbolic", {"question": "Lena has 3 boxes.", "metadata": {"id": 0}}, None),
        ("drop", {"question": "Where?"}, None),
    ],
)
def test_known_tasks_are_grouped(task: str, document: dict[str, Any], cluster: str | None) -> None:
    named = ProviderTask(provider="lm_eval", task=task)
    assert clusters_of("generation_tasks.t", named, [document]) == [cluster]


def test_a_template_takes_precedence() -> None:
    documents = [{"passage": PASSAGE, "part": 1}, {"passage": PASSAGE, "part": 2}]
    task = ProviderTask(provider="lm_eval", task="drop", cluster="part {{ part }}")
    assert clusters_of("generation_tasks.t", task, documents) == ["part 1", "part 2"]


def test_an_own_task_names_its_clusters() -> None:
    task = GenerationTask.model_validate({**TASK, "cluster": "{{ passage }}"})
    row = {"q": "Where?", "g": "5", "passage": PASSAGE}
    assert PromptRecipe("sums", task).prompt(row, 0, ()).cluster == PASSAGE
    assert "cluster" not in task.asked
    assert task.definition["cluster"] == "{{ passage }}"
