"""Prompts of shipped tasks beside those that other harnesses make of the same rows."""

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from evaluation.prefill.items import read_task
from evaluation.prefill.questions import Recipe
from evaluation.prefill.task_prompts import PromptRecipe
from evaluation.providers.program import Provider
from evaluation.providers.tasks import render
from evaluation.settings.config import Config
from evaluation.settings.generation import GenerationTask
from evaluation.settings.provided import VERSIONS, Providers
from evaluation.settings.sources import Task
from evaluation.settings.suites import load_suite
from tests.conftest import ROOT
from tests.prefill.plans import make_plan
from tests.shipped.mirrors import write_mirrors
from tests.tables import cases, table
from tests.workflow.world import write_rows

SUITES = ROOT / "task_suites"
INSTRUCTION = re.compile(r"(Think step by step before answering\.)\s*")
CHOICE = re.compile(r"^\(?[A-D]\) ", re.M)


@pytest.fixture(scope="module")
def provided() -> Callable[[str], Provider]:
    """Returns a provider, or skips the test where it is not installed."""

    def find(name: str) -> Provider:
        variable = f"EVAL_{name.upper()}"
        python = Path(os.environ.get(variable, ROOT / getattr(Providers(), name)))
        if not os.access(python, os.X_OK):
            pytest.skip(f"no {python}: run `make providers`, or set {variable}")
        return Provider(name, python, VERSIONS[name], None)

    return find


@pytest.fixture(scope="module")
def mirrors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    root = write_mirrors(tmp_path_factory.mktemp("protocols"))
    for place, rows in table("shipped/equal_prompts")["rows"].items():
        write_rows(root / f"{place}.jsonl", rows)
    named = {f"{path.parent.name}/{path.name}": str(path) for path in root.glob("*/*")}
    others = table("shipped/equal_prompts")["mirrors"]
    return named | {theirs: named[ours] for theirs, ours in others.items()}


def mirrored(mirrors: dict[str, str]) -> Config:
    return make_plan(Path("cache"), Path("none"), mirrors=mirrors).config


@pytest.mark.parametrize(
    ("suite", "name", "provider", "theirs", "compared"),
    cases("shipped/equal_prompts", "generated"),
)
def test_generated(
    suite: str,
    name: str,
    provider: str,
    theirs: str,
    compared: str,
    provided: Callable[[str], Provider],
    mirrors: dict[str, str],
) -> None:
    harness = provided(provider)
    task = generation_task(suite, name)
    asked = {
        "kind": "generative",
        "chat": task.chat,
        "num_fewshot": None,
        "limit": 9,
        "mirrors": mirrors,
    }
    wanted = [
        line.prompt or line.messages
        for one in theirs.split("+")
        for line in render(harness, "x", {**asked, "task": one})[1]
    ]
    assert shown(our_prompts(name, task, mirrors), compared) == shown(wanted, compared)


def generation_task(suite: str, name: str) -> GenerationTask:
    task = load_suite(SUITES, suite).generation_tasks[name]
    assert isinstance(task, GenerationTask)
    return task


def our_prompts(name: str, task: GenerationTask, mirrors: dict[str, str]) -> list[object]:
    prompts, *_ = read_task(PromptRecipe(name, task), task, mirrored(mirrors))
    return [prompt.turns for prompt in prompts]


@pytest.mark.parametrize(
    ("suite", "name", "provider", "theirs", "compared"), cases("shipped/equal_prompts", "ranked")
)
def test_ranked(
    suite: str,
    name: str,
    provider: str,
    theirs: str,
    compared: str,
    provided: Callable[[str], Provider],
    mirrors: dict[str, str],
) -> None:
    harness = provided(provider)
    task = load_suite(SUITES, suite).tasks[name]
    assert isinstance(task, Task)
    questions, *_ = read_task(Recipe(name, task), task, mirrored(mirrors))
    about = {"task": theirs, "num_fewshot": task.num_fewshot}
    asked = {**about, "kind": "choices", "chat": False, "limit": 9, "mirrors": mirrors}
    _, wanted = render(harness, "x", asked)
    mine = ["".join(pair) for question in questions for pair in question.pairs]
    others = ["".join(pair) for question in wanted for pair in question.choices]
    assert shown(mine, compared) == shown(others, compared)


def shown(prompts: Iterable[object], compared: str) -> list[str]:
    """Return what is compared of prompts, sorted, as the harness groups rows by their category."""
    texts = [_text(prompt) for prompt in prompts]
    if compared == "joined":
        texts = [INSTRUCTION.sub(r"\1\n\n", text) for text in texts]
    if compared != "equal":
        texts = ["\n".join(sorted(CHOICE.sub("(?) ", text).split("\n"))) for text in texts]
    return sorted(texts)


def _text(prompt: object) -> str:
    """Return a text, or the turns of a chat as one."""
    if isinstance(prompt, str):
        return prompt
    assert isinstance(prompt, tuple | list)
    return "\n".join(f"{turn.role}: {turn.content}" for turn in prompt)
