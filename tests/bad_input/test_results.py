"""Any result file that is cut, changed or missing is refused by its path, or reads as one that is right."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evaluation.bridge.deltas import compare
from evaluation.errors import BridgeError, EvaluationError
from evaluation.results.read import read_results
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS
from tests.bad_input.mutations import as_json, damaged, mutated
from tests.bridge.folders import make_plans, write_side


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> StagePlan:
    plan = make_plans(tmp_path_factory.mktemp("results"))["second"]
    for folder, step in ((plan.step_folder(20), 20), (plan.bridge_folder, 10)):
        write_side(folder, plan, step=step, seed=step)
    return plan


def readers(plan: StagePlan) -> Iterator[Callable[[], object]]:
    """What reads the files of a step, and those of its bridge."""
    for tier in plan.tiers:
        yield partial(told, plan, tier)


def told(plan: StagePlan, tier: str) -> object:
    results = read_results(plan.step_folder(20), [tier])
    return compare(results, read_results(plan.bridge_folder, [tier]))


def test_results_are_right(plan: StagePlan) -> None:
    for read in readers(plan):
        read()


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_any_damage(plan: StagePlan, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(sorted(plan.step_folder(20).glob("tier*"))))
    before = path.read_bytes()
    changes = st.none() | damaged(before)
    if path.suffix == ".json":
        changes |= mutated(json.loads(before), most=1).map(lambda tree: as_json(tree).encode())
    content = data.draw(changes)
    path.unlink() if content is None else path.write_bytes(content)
    try:
        for read in readers(plan):
            try:
                read()
            except EvaluationError as error:
                judge(error, path)
    finally:
        path.write_bytes(before)


def judge(error: EvaluationError, path: Path) -> None:
    """It is one line, which names the file, or what contradicts it: a file of its tier, or another side."""
    tier = [name for tier in TIERS.values() if path.name in tier.files for name in tier.files]
    assert "\n" not in str(error)
    is_named = any(str(path.with_name(name)) in str(error) for name in (path.name, *tier))
    assert is_named or isinstance(error, BridgeError), error
