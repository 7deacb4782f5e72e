"""vLLM's contract, driven with a stand-in that answers by transformers."""

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evaluation.checkpoints.contents import Contents
from evaluation.checkpoints.format import open_checkpoint
from evaluation.checkpoints.subjects import step_subject
from evaluation.errors import ScoringError
from evaluation.flow.make import make
from evaluation.flow.targets import COLLECT, SCORE
from evaluation.results.read import read_results
from evaluation.settings.plan import StagePlan
from evaluation.store import ScoreStore
from tests.workflow.world import ANSWERED, FIRST_LETTER, LAST_LETTER, World, ask_for_answers

STAND_IN = Path(__file__).parent / "stand_in"
TASK: dict[str, Any] = {
    **ANSWERED,
    "max_new_tokens": 6,
    "verifiers": {"strict": FIRST_LETTER, "lenient": LAST_LETTER},
    "limit": 12,
}
SAMPLED = {**TASK, "sampling": {"temperature": 1.0, "n": 3, "seed": 1}}

Change = Callable[..., StagePlan]


@pytest.fixture
def change(world: World) -> Change:
    """Gives the suite its tasks and generation its engine; the prefilled plan of stage 2."""

    return lambda engine, **tasks: ask_for_answers(world, tasks, generation=engine or {})


def vllm(folder: Path, **variables: str) -> dict[str, str]:
    """An engine: a Python that has the stand-in."""
    python = folder / "python"
    told = " ".join(f"{name}={value}" for name, value in variables.items())
    path = f"PYTHONPATH=$PYTHONPATH:{shlex.quote(str(STAND_IN))}"
    python.write_text(f'#!/bin/sh\nexec env {path} {told} {sys.executable} "$@"\n')
    python.chmod(0o755)
    return {"engine": "vllm", "python": str(python)}


def answers(plan: StagePlan) -> dict[str, Any]:
    """Scores and collects a step; what Tier5's file says of its tasks."""
    subject = step_subject(plan, 5)
    assert make(SCORE, subject).error is None
    assert make(COLLECT, subject).error is None
    entries = read_results(subject.folder, ("tier5",)).tiers["tier5"].items
    return {name: item.entry for name, item in entries.items()}


def test_greedy_answers_are_the_own_engines_and_are_stored_apart(
    change: Change, tmp_path: Path
) -> None:
    for stop in ([], ["e"]):
        task = {**TASK, "stop": stop}
        plan = change(None, sums=task)
        assert answers(plan)["sums"].engine is None
        texts = step_subject(plan, 5).folder / "generation/sums/results.jsonl"
        own = texts.read_text()
        plan = change(vllm(tmp_path), sums=task)
        found = answers(plan)["sums"]
        equal = {"name": "vllm", "version": "0.0"}
        assert found.engine.model_dump(exclude_none=True) == equal
        assert found.decoding["engine"] == "vllm"
        assert texts.read_text() == own


def test_samples_differ_and_are_the_same_again(change: Change, tmp_path: Path) -> None:
    """More of them keep those that are there."""
    plan = change(vllm(tmp_path), sums=SAMPLED)
    assert answers(plan)["sums"].samples == 36
    store = ScoreStore(plan.scores, make(SCORE, step_subject(plan, 5)).about["identity"])
    before = stored(store)
    assert len({before[key] for key in before}) > 3
    more = {**SAMPLED, "sampling": {**SAMPLED["sampling"], "n": 5}}
    answers(change(vllm(tmp_path), sums=more))
    after = stored(store)
    assert len(after) == 60
    assert before.items() <= after.items()
    fresh = {**more, "sampling": {**more["sampling"], "seed": 2}}
    answers(change(vllm(tmp_path), sums=fresh))
    assert len(stored(store)) == 120


def stored(store: ScoreStore, task: str = "sums") -> dict[tuple[str, str], str]:
    """Texts by the name of the part's item and the sample's key."""
    found = {}
    for name in (one for one in store.names() if one.startswith(f"completions-{task}-")):
        part = store.read(name)
        assert part is not None
        for row in part.table.to_pylist():
            found[name.rsplit("-", 1)[0], row["key"]] = row["text"]
    return found


def test_where_it_dies_what_was_written_is_kept(
    change: Change, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next run asks for the rest."""
    monkeypatch.setattr("evaluation.scoring.vllm.engine.TOGETHER", 4)
    plan = change(vllm(tmp_path, DIE_AFTER="6"), sums=TASK)
    said = r"sums: vLLM .* ended with code 9 after 6 of 12 answers"
    with pytest.raises(ScoringError, match=said):
        make(SCORE, step_subject(plan, 5))
    plan = change(vllm(tmp_path), sums=TASK)
    opened = open_checkpoint(step_subject(plan, 5).checkpoint)
    store = ScoreStore(plan.scores, Contents().identity(opened))
    before = stored(store)
    assert len(before) == 6
    assert answers(plan)["sums"].samples == 12
    assert before.items() <= stored(store).items()
    assert len(stored(store)) == 12


def test_one_program_serves_all_tasks(
    change: Change, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Each task with its own stop strings; greedy completions are the built-in engine's."""
    tasks = {"sums": TASK, "short": {**TASK, "stop": ["e"]}, "drawn": SAMPLED}
    found = answers(change(vllm(tmp_path), **tasks))
    assert capfd.readouterr().err.count("a model is loaded") == 1
    assert [found[name].samples for name in tasks] == [12, 12, 36]


def test_not_installed_is_one_sentence(change: Change, tmp_path: Path) -> None:
    missing = {"engine": "vllm", "python": str(tmp_path / "nowhere" / "python")}
    with pytest.raises(ScoringError, match=r"generation.python: no .*; install vLLM"):
        make(SCORE, step_subject(change(missing, sums=TASK), 5))
    without = {"engine": "vllm", "python": sys.executable}
    with pytest.raises(ScoringError, match=r"ended with code 1 after 0 of 12"):
        make(SCORE, step_subject(change(without, sums=TASK), 5))
