"""Groups of prompts that vary together: by a suite's template, or as known of a provider's task."""

from typing import Any

import pytest

from evaluation.prefill.provided import clusters_of
from evaluation.settings.provided import ProviderTask

PASSAGE = "The river Rhine rises in Switzerland."


@pytest.mark.parametrize(
    ("task", "document", "cluster"),
    [
        ("drop", {"passage": PASSAGE, "question": "Where?"}, PASSAGE),
        ("drop:own", {"passage": "", "section_id": 7}, "7"),
        ("gsm_symbolic", {"original_id": 12, "instance": 3}, "12"),
        ("gsm_symbolic", {"question": "Lena has 3 boxes.", "id": 0}, None),
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
