"""The contract with a provider's program, driven by a stand-in for it."""

import time
from pathlib import Path
from typing import Any

import pytest

from evaluation.errors import SourceError
from evaluation.providers.program import Provider
from evaluation.providers.tasks import Outcome, render, score, verdict_of
from evaluation.settings.computing import Verification
from tests.providers.conftest import Installed
from tests.tables import cases

REQUEST = {
    "task": "sums",
    "kind": "generative",
    "chat": False,
    "num_fewshot": None,
    "limit": 5,
    "mirrors": {},
}
LIMITS = Verification(seconds=1.0, memory_mb=512)


def provider(python: Path) -> Provider:
    return Provider("lm_eval", python, "0.4.13")


def scored(python: Path, *completions: str) -> list[Outcome]:
    cases = [({"letter": "a"}, text) for text in completions]
    found = score(provider(python), "sums", cases, LIMITS)
    assert len(found) == len(completions)
    return found


@pytest.mark.parametrize(("does", "said"), cases("providers/refused", "renders"))
def test_a_task_that_cannot_be_had_is_one_sentence(
    installed: Installed, does: dict[str, Any], said: str
) -> None:
    seconds = 5 if does.get("render") == "hang" else 60  # of a busy machine
    with pytest.raises(SourceError, match=said) as caught:
        render(provider(installed(**does)), "generation_tasks.x", REQUEST, seconds)
    assert "\n" not in str(caught.value)


def test_what_goes_wrong_costs_its_own_case_alone(installed: Installed) -> None:
    texts = ["a", "die", "a", "fail", "memory", "b", "hang", "none", "a"]
    began = time.monotonic()
    found = scored(installed(), *texts)
    assert time.monotonic() - began < 60
    verdicts = [verdict_of("exact", one, "text") for one in found]
    assert [v.credit for v in verdicts] == [1, None, 1, None, None, 0, None, None, 1]
    shares = [verdict_of("shares", found[number], "text") for number in (0, 5)]
    assert [(one.credit, one.weight) for one in shares] == [(1.0, 2.0), (0.5, 2.0)]
    reasons = [v.reason for v in verdicts if v.credit is None]
    expected = [
        *("ended with code 9", "no number", "MemoryError", "not done after 1 seconds"),
        "exact is None, which is not a credit",
    ]
    for reason, part in zip(reasons, expected, strict=True):
        assert part in reason
