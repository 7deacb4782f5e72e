"""A stage's tables follow the results of its bridge's stage, and ask for none."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from evaluation.checkpoints.subjects import step_subject
from evaluation.dependencies.making import Made, make
from evaluation.dependencies.outdated import Outdated, is_behind
from evaluation.dependencies.places import place_of
from evaluation.dependencies.steps import COLLECT, STEPS, TABLES, record_of
from evaluation.orchestration.rule_inputs import RuleInputs
from evaluation.settings.config import load_config
from evaluation.settings.planning import plan_stages
from tests.bridge.folders import write_side
from tests.dependencies.evaluated import leave_as, write_evaluated


def test_tables_follow_the_stage_of_the_bridge(tmp_path: Path) -> None:
    first, second = (plans := plan_stages(load_config(write_evaluated(tmp_path)))).values()

    def is_outdated() -> bool:
        assert Outdated(plans, as_made=True)(TABLES, second) == is_behind(TABLES, second)
        return is_behind(TABLES, second)

    assert not is_outdated()
    before = step_subject(first, 100)
    write_side(before.folder, first, step=100, seed=7)
    paths = [path for files in STEPS[COLLECT].outputs(place_of(before)).values() for path in files]
    leave_as(COLLECT, before, Made(paths))
    assert is_outdated()
    assert make(TABLES, second).error is None
    assert not is_outdated()
    record_of(STEPS[COLLECT], place_of(before)).unlink()  # then its noise is assumed
    assert is_outdated()
    assert make(TABLES, second).error is None
    assert not is_outdated()


def test_only_a_run_of_both_stages_waits_for_it(tmp_path: Path) -> None:
    first, second = (plans := plan_stages(load_config(write_evaluated(tmp_path)))).values()
    outdated, tables = Outdated(plans), (STEPS[TABLES], place_of(second))
    assert outdated.awaited(*tables) == []
    outdated.is_target = lambda place: place.plan.name == "first"
    (read,) = outdated.awaited(*tables)
    assert read == (STEPS[COLLECT], place_of(step_subject(first, 100)))
    assert outdated.awaited(STEPS[COLLECT], tables[1]) == []


@pytest.mark.parametrize(
    ("target", "is_awaited"),
    [
        ("first", True),
        ("second", False),
        ("report.html", True),  # shows all stages
        ("first/summary.csv", True),
        ("second/summary.csv", False),
        ("first/by_checkpoint/step_100/tier2_ppl.json", True),
        ("first/by_checkpoint/step_1000/tier2_ppl.json", False),
        ("shown", True),  # a rule of a workflow that has ours as a module
    ],
)
def test_which_runs_make_it(tmp_path: Path, target: str, is_awaited: bool) -> None:
    second = (plans := plan_stages(load_config(write_evaluated(tmp_path))))["second"]
    results = Path(second.config.results)
    needs = {"name": "shown", "input": [f"{results}/first/report.html"], "get_wildcards": dict}
    run = SimpleNamespace(
        is_main_process=True,
        dag_settings=SimpleNamespace(targets={str(results / target) if "." in target else target}),
        default_target="all",
        rules=[SimpleNamespace(**needs, is_producer=lambda file: False)],
    )
    outdated = RuleInputs(plans, run).outdated
    assert bool(outdated.awaited(STEPS[TABLES], place_of(second))) == is_awaited
