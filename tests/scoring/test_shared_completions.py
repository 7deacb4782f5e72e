"""Completions that several processes share are those of one process."""

import json
import logging
from collections import Counter
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from evaluation.checkpoints.subjects import bridge_subject, step_subject
from evaluation.dependencies.making import make
from evaluation.dependencies.steps import COLLECT, SCORE
from evaluation.errors import ConfigError
from evaluation.scoring import shared_completions
from evaluation.scoring.answers import LENGTH_ONLY, GenerationRequest
from evaluation.scoring.lacking import Asked, Lacking
from evaluation.scoring.session import Job
from evaluation.scoring.shared_completions import devices_of, shares
from evaluation.settings.plan import StagePlan
from tests.workflow.world import ANSWERED, FIRST_LETTER, World, ask_for_answers


def lacking(name: str, samples: Sequence[int]) -> Lacking:
    """An item with a prompt for each number of samples."""
    requests = [
        GenerationRequest(f"{name}{n}", (n,), 4, tuple(range(count)))
        for n, count in enumerate(samples)
    ]
    return Lacking(name, name, {}, requests, LENGTH_ONLY, None)


@pytest.mark.parametrize(
    ("items", "parts", "sizes"),
    [
        ([(1,) * 5], 2, [3, 2]),
        ([(8,)], 4, [2] * 4),
        ([(3, 3, 1)], 2, [4, 3]),
        ([(1,), (1,), (1,)], 3, [1, 1, 1]),
        ([(1,) * 7, (4,) * 3, ()], 2, [10, 9]),
        ([(1,)], 4, [1]),
        ([()], 3, [0]),
        ([], 3, [0]),
    ],
)
def test_each_sample_is_in_one_part(
    items: list[Sequence[int]], parts: int, sizes: list[int]
) -> None:
    given = [lacking(f"item{n}-", samples) for n, samples in enumerate(items)]
    dealt = shares(given, parts)
    pairs = [
        [
            (item.name, one, sample)
            for item in part
            for one in item.requests
            for sample in one.samples
        ]
        for part in dealt
    ]
    assert [len(part) for part in pairs] == sizes
    found = Counter((name, one.id, sample) for part in pairs for name, one, sample in part)
    wanted = {
        (item.name, one.id, n) for item in given for one in item.requests for n in one.samples
    }
    assert found == Counter(wanted)


SUMS: dict[str, Any] = {
    **ANSWERED,
    "max_new_tokens": 6,
    "verifiers": {"strict": FIRST_LETTER},
    "limit": 5,
    "sampling": {"temperature": 1.0, "n": 3, "seed": 1},
}
TASKS = {"sums": SUMS, "greedy": {**SUMS, "sampling": {}, "stop": ["e"]}}


def completions(plan: StagePlan, role: str = "step") -> list[str]:
    """Scores and collects a step or the bridge; its completions in order."""
    subject = (
        step_subject(plan, 5)
        if role == "step"
        else bridge_subject(plan, {plan.name: plan, **OWNERS})
    )
    assert make(SCORE, subject).error is None
    assert make(COLLECT, subject).error is None
    paths = [subject.folder / f"generation/{name}/completions.jsonl" for name in TASKS]
    return [
        json.loads(line)["completion"] for path in paths for line in path.read_text().splitlines()
    ]


OWNERS: dict[str, StagePlan] = {}


def empty(plan: StagePlan) -> None:
    """Removes all scores."""
    for file in plan.scores.rglob("*"):
        if file.is_file():
            file.unlink()


def test_three_processes_write_what_one_does(
    world: World, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO)
    plan = ask_for_answers(world, TASKS)
    OWNERS.update(world.plans)
    alone = completions(plan), completions(plan, "bridge")
    assert len(alone[0]) == 20
    assert "are shared" not in caplog.text
    assert plan.gpus == 1
    world.change(generation={"processes": 3})
    shared = world.plans["stage2"]
    assert completions(shared) == alone[0]
    assert "are shared" not in caplog.text, "nothing is lacking"

    empty(plan)
    counted = list[Lacking]()
    take = Lacking.asked

    def asked(self: Lacking, job: Job) -> Asked:
        counted.append(self)
        return take(self, job)

    monkeypatch.setattr(Lacking, "asked", asked)
    assert (completions(shared), completions(shared, "bridge")) == alone
    assert caplog.text.count("completions are shared with 2 more processes") == 2
    own = sum(len(one.samples) for item in counted for one in item.requests)
    assert own == 14, "a third of each checkpoint's samples, rounded up"
    assert "failed" not in caplog.text
    assert (shared.gpus, world.plans["stage1"].gpus) == (3, 1)


def test_what_a_failed_helper_lacks_is_generated_here(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    plan = ask_for_answers(world, TASKS)
    alone = completions(plan)
    empty(plan)
    world.change(generation={"processes": 2})
    monkeypatch.setattr(shared_completions, "_HELPER", "evaluation.no_such_module")
    assert completions(world.plans["stage2"]) == alone
    assert "a process that shared the completions failed (exit code 1" in caplog.text


def test_gpus_are_dealt_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3,4")
    for processes, size, expected in ((2, 1, ["0", "1"]), (4, 2, ["0,1", "2,3"]), (8, 8, [None])):
        config = SimpleNamespace(
            scoring=SimpleNamespace(gpus_per_checkpoint=size),
            generation=SimpleNamespace(processes=processes),
        )
        plan = cast(StagePlan, SimpleNamespace(config=config))
        assert devices_of(plan, "cuda") == expected
        assert devices_of(plan, "cpu") == [None] * processes
    assert "processes: 4, but the 5 GPUs of this process are enough for 2" in caplog.text


def test_vllm_is_given_no_processes(world: World) -> None:
    world.change(generation={"engine": "vllm", "python": "/usr/bin/python3", "processes": 2})
    with pytest.raises(
        ConfigError, match=r"give vLLM several GPUs by `scoring.gpus_per_checkpoint`"
    ):
        assert world.plans
