"""vLLM's contract, driven with a stand-in that answers by transformers."""

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evaluation.checkpoints.contents import Contents
from evaluation.checkpoints.format import open_checkpoint
from evaluation.checkpoints.subjects import step_subject
from evaluation.dependencies.making import make
from evaluation.dependencies.steps import COLLECT, SCORE
from evaluation.errors import ScoringError
from evaluation.processes import PythonProgram
from evaluation.results.read import read_results
from evaluation.scoring.vllm.engine import answer_lines
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
    """Another engine's are asked again, and what both give is told."""
    for stop in ([], ["e"]):
        task = {**TASK, "stop": stop}
        plan = change(None, sums=task)
        assert answers(plan)["sums"].engine is None
        texts = step_subject(plan, 5).folder / "generation/sums/completions.jsonl"
        own = texts.read_text()
        plan = change(vllm(tmp_path), sums=task)
        found = answers(plan)["sums"]
        equal = {"name": "vllm", "version": "0.0", "asked": 8, "equal": 8}
        assert found.engine.model_dump(exclude_none=True) == equal
        assert found.decoding["engine"] == "vllm"
        assert texts.read_text() == own


def test_what_differs_is_counted(change: Change, tmp_path: Path) -> None:
    found = answers(change(vllm(tmp_path, ANOTHER="1"), sums=TASK))["sums"]
    assert (found.engine.asked, found.engine.equal) == (8, 0)


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


def test_all_stored_starts_nothing(change: Change, tmp_path: Path) -> None:
    plan = change(vllm(tmp_path), sums=TASK)
    first = answers(plan)["sums"]
    (tmp_path / "python").unlink()
    assert answers(plan)["sums"] == first


def test_where_it_dies_what_was_written_is_kept(
    change: Change,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The log has all that it printed; the next run asks for the rest."""
    monkeypatch.setattr("evaluation.scoring.vllm.engine.TOGETHER", 4)
    plan = change(vllm(tmp_path, DIE_AFTER="6"), sums=TASK)
    caplog.set_level("INFO")
    said = r"sums: vLLM .* has written 6 of 20 answers.* code 9"
    with pytest.raises(ScoringError, match=said):
        make(SCORE, step_subject(plan, 5))
    for line in ("a model is loaded", "a line of another process", "warning: 1 leaked object"):
        assert f"vLLM: {line}" in caplog.text
    plan = change(vllm(tmp_path), sums=TASK)
    opened = open_checkpoint(step_subject(plan, 5).checkpoint)
    store = ScoreStore(plan.scores, Contents().identity(opened))
    before = stored(store)
    assert len(before) == 6
    assert answers(plan)["sums"].samples == 12
    assert before.items() <= stored(store).items()
    assert len(stored(store)) == 12


def test_one_program_serves_all_tasks(
    change: Change, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Each task with its own stop strings; greedy completions are the built-in engine's."""
    tasks = {"sums": TASK, "short": {**TASK, "stop": ["e"]}, "drawn": SAMPLED}
    caplog.set_level("INFO")
    found = answers(change(vllm(tmp_path), **tasks))
    assert caplog.text.count("vLLM: a model is loaded") == 1
    assert {entry.engine.equal for entry in found.values()} == {8}
    assert [found[name].samples for name in tasks] == [12, 12, 36]


LINE = '{"number": 0, "tokens": [], "reason": "eos"}'
PROGRAMS = {
    "hangs": ("echo it begins; exec sleep 3600", "printed nothing for 1 s and was stopped, with 0 of 1"),
    "prints for a while": (f"for i in 1 2 3 4 5; do sleep 0.3; echo .; done; echo '{LINE}' >> "
                           f"answers.jsonl", None),
    "has written all": (f"echo '{LINE}' >> answers.jsonl; exec sleep 3600", None),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_waited_for_while_it_works(tmp_path: Path, name: str) -> None:
    text, error = PROGRAMS[name]
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{text}\n")
    python.chmod(0o755)
    lines = answer_lines(PythonProgram(python, "none", (), tmp_path, {}), 1, 1.0)
    if error is None:
        assert list(lines) == [[json.loads(LINE)]]
        return
    with pytest.raises(ScoringError, match=error):
        list(lines)


def test_not_installed_is_one_sentence(change: Change, tmp_path: Path) -> None:
    missing = {"engine": "vllm", "python": str(tmp_path / "nowhere" / "python")}
    with pytest.raises(ScoringError, match=r"generation.python: no .*; install vLLM"):
        make(SCORE, step_subject(change(missing, sums=TASK), 5))
    without = {"engine": "vllm", "python": sys.executable}
    with pytest.raises(ScoringError, match=r"python\S* has no vLLM; install it there"):
        make(SCORE, step_subject(change(without, sums=TASK), 5))
