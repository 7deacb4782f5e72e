"""The suites in task_suites: all can be planned, and OlmoBaseEval's weigh tasks as olmo-eval does."""

import json
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
import yaml

from evaluation.errors import ConfigError
from evaluation.settings.config import validate_config
from evaluation.settings.groups import group_leaves, group_weights
from evaluation.settings.plan import StagePlan
from evaluation.settings.planning import plan_stages
from evaluation.settings.sources import Source
from evaluation.settings.suites import Suite, load_suite
from tests.conftest import ROOT
from tests.settings.test_wrong_settings import suite_files
from tests.tables import cases, table

SUITES = ROOT / "task_suites"
LENGTHS = (4096, 8192, 16384, 32768, 65536, 131072)

OLMOBASE = table("settings/olmobase")
REFUSED = set(OLMOBASE["refused"])
PROMISED = ("arc_challenge", "arc_easy", "csqa", "piqa")
"""Tasks whose names promise bits per byte, of which olmo-eval computes accuracies."""


def planned(*suites: str) -> StagePlan:
    stage = {"checkpoints": "ckpts", "steps": [1], "suites": list(suites)}
    raw = {"results": "results", "cache": "cache", "suites": str(SUITES), "stages": {"one": stage}}
    raw |= {"tokenizer": {"name": "t"}, "sequence_length": 4096}
    return plan_stages(validate_config(raw, "config.yaml"))["one"]


def specs(suite: Suite) -> dict[str, str]:
    """Names of olmo-eval's tasks, by the names here."""
    provided: dict[str, Any] = {**suite.tasks, **suite.generation_tasks}
    assert {task.provider for task in provided.values()} == {"olmo_eval"}
    return {name: task.task for name, task in provided.items()}


@pytest.fixture(scope="module")
def upstream(shared: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((shared / "reference/olmobase/suites.json").read_text())
    return found


@pytest.fixture(scope="module")
def shipped() -> Suite:
    return planned("olmobase_easy", "olmobase_main", "olmobase_fim", "ruler").suite


@pytest.mark.parametrize("name", sorted(path.stem for path in SUITES.glob("*.yaml")))
def test_each_can_be_planned(name: str) -> None:
    assert planned(name).tiers


@pytest.mark.parametrize(
    ("name", "tasks", "generated", "groups"), cases("settings/olmobase", "counts")
)
def test_counts(name: str, tasks: int, generated: int, groups: int) -> None:
    suite = planned(name).suite
    counts = (len(suite.tasks), len(suite.generation_tasks), len(suite.groups))
    assert counts == (tasks, generated, groups)


def test_a_shared_name_of_one_definition(tmp_path: Path) -> None:
    tasks = {"tasks": {"lambada": {"provider": "olmo_eval", "task": "lambada"}}}
    folder = suite_files(tmp_path, base=tasks, same={"extends": "base", **tasks})
    assert load_suite(folder, "same") == load_suite(folder, "base")


def test_tasks_are_those_of_the_suites(shipped: Suite, upstream: dict[str, Any]) -> None:
    bases = [suite for name, suite in upstream.items() if name.startswith("olmobase:")]
    known = {leaf for suite in bases for leaf in leaves(suite)}
    ruler = leaves(upstream["ruler_all__4096"])
    ruler = [leaf.replace("4096", str(length)) for leaf in ruler for length in LENGTHS]
    alike = {"lambada:olmo3base"}  # the same as lambada
    assert set(specs(shipped).values()) == (known - REFUSED - alike) | {*ruler}
    assert known >= REFUSED


def leaves(suite: dict[str, Any]) -> list[str]:
    return [leaf for child in suite["children"] for leaf in child["leaves"]]


def weights(suite: dict[str, Any], included: Collection[str]) -> dict[str, float]:
    """What olmo-eval makes each task weigh, of those that are included."""
    found = [[one for one in child["leaves"] if one in included] for child in suite["children"]]
    if suite["aggregation"] == "average":
        found = [[one for child in found for one in child]]
    children = [child for child in found if child]
    return {leaf: 1 / len(children) / len(child) for child in children for leaf in child}


def described(name: str, upstream: dict[str, Any]) -> dict[str, Any]:
    """A suite as suites.json has it; one that only occurs in others, as it counts there."""
    if name in upstream and name != "mmlu:rc:olmo3base":
        return dict(upstream[name])
    (found,) = {
        tuple(child["leaves"])
        for suite in upstream.values()
        for child in suite["children"]
        if child.get("suite") == name
    }
    return {"aggregation": "average", "children": [{"leaves": found}]}


GROUPS = {
    name: None
    for suite in ("olmobase_easy", "olmobase_main", "olmobase_fim", "ruler")
    for name in load_suite(SUITES, suite).groups
    if not name.startswith("ruler") or name.endswith("__4096")
}


@pytest.mark.parametrize("name", GROUPS)
def test_each_task_weighs_what_olmo_eval_makes_it_weigh(
    name: str, shipped: Suite, upstream: dict[str, Any]
) -> None:
    suite, spec = described(OLMOBASE["parts"].get(name, name), upstream), specs(shipped)
    found = group_weights(name, shipped.groups, {})
    ours = {spec[leaf]: weight for leaf, weight in found.items()}
    if "lambada" in ours and "lambada:olmo3base" in leaves(suite):  # the same task
        ours["lambada:olmo3base"] = ours.pop("lambada")
    assert set(leaves(suite)) - ours.keys() == set(OLMOBASE["left_out"].get(name, ()))
    assert ours == pytest.approx(weights(suite, ours), abs=1e-12)
    assert sum(ours.values()) == pytest.approx(1, abs=1e-12)
    if name in OLMOBASE["headlines"]:
        metric, scorer = OLMOBASE["headlines"][name]
        value = sum(number * ours.get(leaf, 0) for number, leaf in enumerate(leaves(suite)))
        assert value == pytest.approx(suite["example"][metric][scorer], abs=1e-12)


def test_bits_per_byte_of_easy_questions_are_those_that_the_names_promise(
    shipped: Suite, upstream: dict[str, Any]
) -> None:
    """olmo-eval's own number is the same mean without the four tasks."""
    suite = upstream["olmobase:easy:qa:bpb"]
    computed = [leaf for leaf in leaves(suite) if not leaf.startswith(PROMISED)]
    assert len(leaves(suite)) - len(computed) == 4
    order = {leaf: number for number, leaf in enumerate(leaves(suite))}
    value = sum(order[leaf] * weight for leaf, weight in weights(suite, computed).items())
    assert value == pytest.approx(suite["example"]["bits_per_byte"]["bits_per_byte"], abs=1e-12)
    for name in PROMISED:
        assert shipped.tasks[f"{name}_bpb"].kind == "gold"


def test_no_mean_holds_what_is_better_higher_and_lower(shipped: Suite) -> None:
    for name, group in shipped.groups.items():
        if group.tier == "tier3" or group.also:
            assert bool(group.greedy) == bool(group.also) == (name == "olmobase:gen")
        if group.tier == "tier3":
            kinds = {shipped.tasks[leaf].kind for leaf in group_leaves(name, shipped.groups)}
            assert kinds == {"gold" if "bpb" in name else "ranked"}


def test_ruler_has_a_group_for_each_length(shipped: Suite) -> None:
    groups = planned("ruler").suite.groups
    assert [*groups] == [*(f"ruler_all__{length}" for length in LENGTHS), "ruler"]
    assert [*groups["ruler"].members] == [*groups][:-1]
    for name, group in [*groups.items()][:-1]:
        assert len(group.members) == 13
        assert all(member.endswith(name.removeprefix("ruler_all")) for member in group.members)


def test_a_suite_by_its_name_is_added_to_what_else_there_is(tmp_path: Path) -> None:
    own = {"squad": {"provider": "olmo_eval", "task": "squad:rc:olmo3base"}}
    mixed = {"olmo_eval_suites": ["olmobase:gen"], "tasks": own}
    few = {"extends": "mixed", "overrides": {"tasks": {"hellaswag_rc": {"limit": 9}}}}
    wrong = {"olmo_eval_suites": ["olmobase:gem"]}
    twice = {**mixed, "tasks": {"hellaswag_rc": own["squad"]}}
    folder = suite_files(tmp_path, mixed=mixed, few=few, wrong=wrong, twice=twice)
    suite = load_suite(folder, "mixed")
    assert (len(suite.tasks), len(suite.generation_tasks)) == (10, 5)
    assert {"olmobase:gen (ranked)", "olmobase:gen (generated)"} < suite.groups.keys()
    assert load_suite(folder, "few").tasks["hellaswag_rc"].limit == 9  # type: ignore[union-attr]
    for name, said in (
        ("wrong", r"wrong\.yaml: olmo_eval_suites: 'olmobase:gem' .*did you mean olmobase:gen"),
        ("twice", r"tasks\.hellaswag_rc: .* has this name, too; rename it"),
    ):
        with pytest.raises(ConfigError, match=said):
            load_suite(folder, name)


UNPINNED = Path(__file__).with_name("unpinned.yaml")


def test_what_has_no_pinned_revision_is_listed() -> None:
    """A commit that nobody has seen is not invented: prefill stores the one that it got."""
    suites = [load_suite(SUITES, path.stem) for path in sorted(SUITES.glob("*.yaml"))]
    items = [
        item
        for suite in suites
        for section in ("slices", "tasks", "generation_tasks")
        for item in getattr(suite, section).values()
        if isinstance(item, Source) and item.dataset
    ]
    moving = {
        str(one.dataset) for one in items if not re.fullmatch("[0-9a-f]{40}", one.revision or "")
    }
    assert sorted(moving) == yaml.safe_load(UNPINNED.read_text())
    pinned = {(one.revision, one.dataset) for one in items if one.dataset not in moving}
    assert len({revision for revision, _ in pinned}) == len(
        pinned
    )  # none inherits another's commit
    assert len(pinned) > len(moving) / 2
