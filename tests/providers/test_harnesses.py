"""The providers themselves, where `make providers` has put them."""

import os
from pathlib import Path
from typing import Any

import pytest

from evaluation.errors import SourceError
from evaluation.providers.program import Provider
from evaluation.providers.tasks import Document, TaskInfo, render, score, verdict_of
from evaluation.settings.computing import Verification
from evaluation.settings.provided import VERSIONS, Providers
from tests.conftest import ROOT
from tests.tables import cases

ROWS = 3
LIMITS = Verification(seconds=60, memory_mb=4096)
DATASETS = {
    "openai/gsm8k": "gsm8k",
    "HuggingFaceH4/MATH-500": "MATH-500",
}


def provider(name: str) -> Provider:
    python = ROOT / getattr(Providers(), name)
    if not os.access(python, os.X_OK):
        pytest.skip(f"no {python}: `make providers` installs it")
    return Provider(name, python, VERSIONS[name])


@pytest.fixture
def mirrors(shared: Path) -> dict[str, str]:
    named = {name: str(shared / "data/generative" / at) for name, at in DATASETS.items()}
    return {"*": str(shared / "data"), **named}


def request(task: str, mirrors: dict[str, str], **asked: Any) -> dict[str, Any]:
    shots = {"kind": "generative", "chat": False, "num_fewshot": None, "limit": ROWS}
    return {"task": task, "mirrors": mirrors, **shots, **asked}


def prompts(
    name: str, task: str, mirrors: dict[str, str], **asked: Any
) -> tuple[TaskInfo, list[Document]]:
    return render(provider(name), "generation_tasks.x", request(task, mirrors, **asked))


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
    _, documents = prompts(name, task, mirrors)
    golds = [
        str(one.gold) if task == "gsm8k" else f"The final answer is $\\boxed{{{one.gold}}}$."
        for one in documents
    ]
    answers = [(one.document, text) for one, text in zip(documents, golds, strict=True)]
    others = [(one.document, "I do not know.") for one in documents]
    outcomes = score(provider(name), task, [*answers, *others], LIMITS)
    credits = [verdict_of(metric, outcome, "").credit for outcome in outcomes]
    assert credits == [1.0] * ROWS + [0.0] * ROWS


@pytest.mark.parametrize("name", ["lighteval", "lm_eval"])
def test_prompts_few_shot_and_as_a_chat(name: str, mirrors: dict[str, str]) -> None:
    info, plain = prompts(name, "gsm8k", mirrors, num_fewshot=2)
    _, chat = prompts(name, "gsm8k", mirrors, num_fewshot=2, chat=True)
    assert "Question:" in info.stop
    for text, turns in zip(plain, chat, strict=True):
        assert text.prompt is not None
        assert text.prompt.count("Question:") == 3
        assert turns.messages is not None
        assert [turn.role for turn in turns.messages] == ["user", "assistant"] * 2 + ["user"]
        assert text.prompt.startswith(turns.messages[0].content)


@pytest.mark.parametrize(("name", "task", "said"), cases("providers/refused", "not_supported"))
def test_what_is_not_taken_is_refused_in_one_sentence(
    name: str, task: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(SourceError, match=said) as caught:
        prompts(name, task, {})
    assert "\n" not in str(caught.value)
