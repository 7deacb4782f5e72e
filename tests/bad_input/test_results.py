"""Any result file that is cut, changed or missing: it is made again, and who reads it until then names it."""

import itertools
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import evaluation
from evaluation.bridge.deltas import compare
from evaluation.checkpoints.subjects import bridge_subject, step_subject
from evaluation.dependencies.outdated import Outdated
from evaluation.dependencies.places import Target
from evaluation.dependencies.steps import COLLECT, STEP_DELTAS, TABLES
from evaluation.errors import BridgeError, EvaluationError
from evaluation.records import FOLDER
from evaluation.reporting.dataframes import LoadedStage
from evaluation.reporting.status import stage_status
from evaluation.reporting.tables.values import values_of
from evaluation.results.deltas_file import DELTAS, StageDeltas, StepDeltas
from evaluation.results.read import read_results
from evaluation.results.stage_files import QUALITY, RECOMMENDATION, Recommendation, TaskQuality
from evaluation.settings.config import load_config
from evaluation.settings.plan import StagePlan
from evaluation.settings.planning import plan_stages
from evaluation.settings.tiers import TIERS
from tests.bad_input.mutations import as_json, damaged, mutated
from tests.dependencies.evaluated import STEPS, write_evaluated

Plans = dict[str, StagePlan]


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> Plans:
    folder = tmp_path_factory.mktemp("results")
    sections = tuple(tier.section for tier in TIERS.values())
    return plan_stages(load_config(write_evaluated(folder, sections, items=9, blocks=8, prompts=6)))


def made(plans: Plans) -> Iterator[tuple[str, Target]]:
    """Every step with records, and what it was made for."""
    first, second = plans.values()
    steps = [step_subject(second, step) for step in STEPS]
    for subject in (step_subject(first, 100), bridge_subject(second, plans), *steps):
        yield COLLECT, subject
    yield from itertools.product([STEP_DELTAS], steps)
    yield from itertools.product([TABLES], plans.values())


def outdated(plans: Plans) -> list[str]:
    ask = Outdated(plans)
    return [name for name, target in made(plans) if ask(name, target)]


def readers(plans: Plans) -> Iterator[tuple[Path, Callable[[], object]]]:
    """What reads results, and of which folder."""
    first, second = plans.values()
    bridge = second.bridge_folder
    for folder in (first.step_folder(100), bridge, *map(second.step_folder, STEPS)):
        for tier in second.tiers:
            yield folder, partial(told, folder, bridge, tier)
    for step in STEPS:
        yield (folder := second.step_folder(step)), partial(StepDeltas.read, folder / DELTAS)
    for model, file in STAGE_FILES.items():
        yield second.results, partial(model.read, second.results / file)
    for plan, steps in ((first, (100,)), (second, STEPS)):
        yield plan.results, partial(stage_status, plan, steps)
        yield plan.results, partial(tables, plan)
        for step, tier in itertools.product(steps, plan.tiers):
            yield plan.step_folder(step), partial(items, plan, step, tier)


def told(folder: Path, bridge: Path, tier: str) -> object:
    results = read_results(folder, [tier])
    return values_of(results), compare(results, read_results(bridge, [tier]))


def tables(plan: StagePlan) -> object:
    (stage,) = evaluation.load(plan.results).stages.values()
    return stage.summary, stage.deltas, stage.recommendation


def items(plan: StagePlan, step: int, tier: str) -> object:
    stage = LoadedStage(name=plan.name, folder=plan.results)
    return stage.items(tier, step), list(stage.completions(step))


STAGE_FILES = {StageDeltas: DELTAS, Recommendation: RECOMMENDATION, TaskQuality: QUALITY}


def files_of(plans: Plans) -> list[Path]:
    root = Path(plans["first"].config.results)
    return sorted(path for path in root.rglob("*") if path.is_file())


@contextmanager
def changed(path: Path, content: bytes | None) -> Iterator[None]:
    """A file with other content, or None for no file, and with another time, as it was at the end."""
    before, status = path.read_bytes(), path.stat()
    path.unlink()
    if content is not None:
        path.write_bytes(content)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 10**9))
    yield
    path.write_bytes(before)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def test_results_are_right(plans: Plans) -> None:
    assert outdated(plans) == []
    for _, read in readers(plans):
        read()


@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_any_damage(plans: Plans, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(files_of(plans)))
    before = path.read_bytes()
    changes = st.none() | damaged(before)
    if path.suffix == ".json":
        changes |= mutated(json.loads(before), most=1).map(lambda tree: as_json(tree).encode())
    content = data.draw(changes)
    known = [(folder, read) for folder, read in readers(plans) if path.is_relative_to(folder)]
    with changed(path, content):
        if path.parent.name != FOLDER and content != before:
            assert outdated(plans), f"{path} is not made again"
        for _, read in known:
            try:
                read()
            except EvaluationError as error:
                judge(error, path)


def judge(error: EvaluationError, path: Path) -> None:
    """It is one line, which names the file, or what contradicts it: a file of its tier, or another side."""
    said = str(error)
    tier = [
        path.with_name(name)
        for one in TIERS.values()
        if path.name in one.files
        for name in one.files
    ]
    assert "\n" not in said
    is_named = any(str(one) in said for one in (path, *tier))
    is_known = path.name in said or isinstance(error, BridgeError)
    assert is_named or (is_known and str(path.parent) in said), said
