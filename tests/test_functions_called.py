"""How many functions of ours are called from one question to its verdict, and to that on the stage."""

import sys
from collections.abc import Callable
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
import yaml

from evaluation.bridge.decision import decide
from evaluation.bridge.deltas import compare
from evaluation.bridge.recommendation import recommend
from evaluation.grading.completions import verify_samples
from evaluation.grading.verdicts import find_verdicts
from evaluation.prefill.caches import DocumentLine, Prompt, PromptCache
from evaluation.results.read import read_results
from evaluation.scoring.stored_completions import StoredCompletion
from evaluation.settings.tiers import TIERS
from evaluation.store import ScoreStore
from evaluation.verification import pool
from tests.bridge.folders import make_plans, write_side
from tests.conftest import ROOT


def called(function: Callable[..., Any], *args: Any) -> tuple[set[str], Any]:
    """The functions of the package that a call calls, no lambdas or comprehensions, and its value."""
    names = set()

    def count(frame: Any, event: str, _: Any) -> None:
        code, package = frame.f_code, f"{ROOT / 'evaluation'}/"
        if event == "call" and code.co_filename.startswith(package) and "<" not in code.co_name:
            names.add(f"{code.co_filename.removeprefix(package)} {code.co_qualname}")

    sys.setprofile(count)
    try:
        return names, function(*args)
    finally:
        sys.setprofile(None)


def in_a_worker(job: pool.VerifierJob) -> float | None:
    pool._prepare(None, "seccomp", [job[0].kind])
    return pool._verify_here(*job, 10.0, 1024).credit


def test_from_a_stored_completion_to_its_verdict(tmp_path: Path) -> None:
    suite = yaml.safe_load((ROOT / "task_suites/benchmarks_base.yaml").read_text())
    tasks = {"gsm8k": suite["generation_tasks"]["gsm8k"]}
    plan = make_plans(tmp_path, suite={"generation_tasks": tasks}, objective=[])["second"]
    task, gold = plan.suite.generation_tasks["gsm8k"], {"gold": "18"}
    cache = PromptCache([Prompt(id="1", prompt="How many?", tokens=(1,), max_new_tokens=9)], {})
    lines = {"1": DocumentLine(id="1", document=gold, strata={})}
    samples = [("1", 0, StoredCompletion("9 + 9 = 18. #### 18", "eos", 1, 9))]
    find = partial(find_verdicts, plan, ScoreStore(plan.scores, "of"), TIERS["tier5"], "gsm8k")
    names, _ = called(verify_samples, task, cache, lines, samples, find)
    with get_context("forkserver").Pool(1) as worker:
        for verifier in task.views.values():
            job = verifier, gold, samples[0][2].text
            more, credit = worker.apply(called, (in_a_worker, job))
            assert credit == 1
            names |= more
    assert len(names) <= 41, sorted(names)


@pytest.mark.parametrize("items", ["slices", "tasks"])
def test_from_units_to_deltas_and_the_verdict_on_a_stage(items: str, tmp_path: Path) -> None:
    plan = make_plans(tmp_path, tiers=(items,))["second"]
    folders = {100: plan.bridge_folder, 10: plan.step_folder(10), 20: plan.step_folder(20)}
    for step, folder in folders.items():
        write_side(folder, plan, step=step, seed=step, skill=step / 100, nats=3 - step / 1000)
    sides = {step: read_results(folder, plan.tiers) for step, folder in folders.items()}
    names, deltas = called(lambda: {n: compare(sides[n], sides[100]) for n in (10, 20)})
    assert len(names) <= 51, sorted(names)

    def advice() -> dict[str, Any]:
        decision = decide(plan.name, plan.stage.objective, deltas)
        return recommend(plan.name, plan.stage.objective, decision, dict.fromkeys(deltas, ""))

    more, advised = called(advice)
    assert advised["step"] in deltas
    assert len(names | more) <= 82, sorted(names | more)
