"""The suites in task_suites: all can be planned, and OlmoBaseEval's weigh tasks as olmo-eval does."""

import json
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from evaluation.errors import ConfigError
from evaluation.settings.config import validate_config
from evaluation.settings.groups import group_leaves, group_weights
from evaluation.settings.plan import StagePlan
from evaluation.settings.planning import plan_stages
from evaluation.settings.provided import ProviderChoices, ProviderTask
from evaluation.settings.suites import Suite, load_suite
from tests.conftest import ROOT
from tests.settings.test_wrong_settings import suite_files

SUITES = ROOT / "task_suites"
LENGTHS = (4096, 8192, 16384, 32768, 65536, 131072)

PARTS = {
    "mmlu:rc:olmo3base (flat)": "mmlu:rc:olmo3base",
    "olmobase:gen (ranked)": "olmobase:gen",
    "olmobase:gen (generated)": "olmobase:gen",
    "olmobase:code (Python)": "olmobase:code",
}
"""Groups that have another name than olmo-eval's suite: what they hold of it says `LEFT_OUT`."""

GENERATED = {f"{name}:gen:olmo3base" for name in ("coqa", "drop", "jeopardy", "naturalqs", "squad")}
RANKED = {
    *("hellaswag:rc:olmo3base", "winogrande:rc:olmo3base"),
    *(
        f"basic_skills_{name}:rc:olmo3base"
        for name in (
            *("arithmetic", "coding", "common_knowledge"),
            *("logical_reasoning", "pattern", "string_operations"),
        )
    ),
}

REFUSED = {
    *("bigcodebench:olmo3base", "ds1000:olmo3base"),
    *(
        f"multipl_e_{data}_{language}:olmo3base"
        for data in ("humaneval", "mbpp")
        for language in ("cpp", "java", "js", "php", "rs", "sh")
    ),
}
"""Tasks whose programs need other languages, or libraries that the sandbox lacks."""

LEFT_OUT: dict[str, set[str]] = {
    # It has no choices, and a mean of accuracies cannot hold bits per byte.
    "olmobase:easy:qa:rc": {"lambada"},
    # Accuracies are of Tier3, F1 of generated answers of Tier5; lambada as above.
    "olmobase:gen (ranked)": {"lambada:olmo3base", *GENERATED},
    "olmobase:gen (generated)": {"lambada:olmo3base", *RANKED},
    "olmobase:code (Python)": REFUSED,
}
"""Tasks of olmo-eval's suite that are in no group of this name, and why."""

HEADLINES = {
    "olmobase:easy:qa:rc": ("accuracy", "logprob"),
    "olmobase:easy:math:bpb": ("primary_score", "average"),
    "olmobase:easy:code:bpb": ("primary_score", "average"),
    "olmobase:mcqa_stem": ("primary_score", "average"),
    "olmobase:mcqa_non_stem": ("primary_score", "average"),
    "olmobase:gen (ranked)": ("accuracy", "logprob"),
    "olmobase:gen": ("primary_score", "average"),
    "olmobase:math": ("primary_score", "average"),
    "olmobase:code_fim": ("pass_at_1", "code_exec"),
    "ruler_all__4096": ("recall", "substring_recall"),
}
"""The number of olmo-eval that each group equals. olmobase:easy:qa:bpb equals none (docs/olmobase.md)."""

PROMISED = ("arc_challenge", "arc_easy", "csqa", "piqa")
"""Tasks whose names promise bits per byte, of which olmo-eval computes accuracies."""


def planned(*suites: str) -> StagePlan:
    stage = {"checkpoints": "ckpts", "steps": [1], "suites": list(suites)}
    raw = {
        "results": "results",
        "cache": "cache",
        "suites": str(SUITES),
        "tokenizer": {"name": "t"},
        "sequence_length": 4096,
        "stages": {"one": stage},
    }
    return plan_stages(validate_config(raw, "config.yaml"))["one"]


def specs(suite: Suite) -> dict[str, str]:
    """Names of olmo-eval's tasks, by the names here."""
    items = {**suite.tasks, **suite.generation_tasks}
    provided = {
        name: task
        for name, task in items.items()
        if isinstance(task, ProviderChoices | ProviderTask)
    }
    assert provided.keys() == items.keys()
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
    ("name", "tasks", "generated", "groups"),
    [
        ("olmobase_easy", 192, 0, 11),
        ("olmobase_main", 79, 19, 15),
        ("olmobase_fim", 0, 3, 1),
        ("ruler", 0, 78, 7),
    ],
)
def test_counts(name: str, tasks: int, generated: int, groups: int) -> None:
    suite = planned(name).suite
    counts = (len(suite.tasks), len(suite.generation_tasks), len(suite.groups))
    assert counts == (tasks, generated, groups)


def test_what_two_suites_share_is_there_once() -> None:
    easy, main, both = (
        planned(*names).suite
        for names in (
            ["olmobase_easy"],
            ["olmobase_main"],
            ["olmobase_easy", "olmobase_main", "stage3_verified"],
        )
    )
    shared = easy.tasks.keys() & main.tasks.keys()
    assert len(shared) == 9
    assert len(both.tasks) == 192 + 79 - 9
    assert both.groups.keys() == easy.groups.keys() | main.groups.keys()


def test_another_definition_of_a_shared_name_is_refused(tmp_path: Path) -> None:
    task = {"provider": "olmo_eval", "task": "lambada"}
    folder = suite_files(
        tmp_path,
        base={"tasks": {"lambada": task}},
        same={"extends": "base", "tasks": {"lambada": task}},
        other={"extends": "base", "tasks": {"lambada": {**task, "limit": 10}}},
    )
    assert load_suite(folder, "same") == load_suite(folder, "base")
    with pytest.raises(
        ConfigError, match=r"other\.yaml: tasks\.lambada: .* differently; rename one"
    ):
        load_suite(folder, "other")


def test_tasks_are_those_of_the_suites(shipped: Suite, upstream: dict[str, Any]) -> None:
    known = {
        leaf for name in upstream if name.startswith("olmobase:") for leaf in leaves(upstream[name])
    }
    ruler = {
        leaf.replace("4096", str(length))
        for leaf in leaves(upstream["ruler_all__4096"])
        for length in LENGTHS
    }
    alike = {"lambada:olmo3base"}  # the same as lambada
    assert set(specs(shipped).values()) == (known - REFUSED - alike) | ruler
    assert known >= REFUSED


def test_tasks_are_called_as_in_olmo_eval(shipped: Suite) -> None:
    others = planned("stage3_verified").suite.generation_tasks
    for name, spec in specs(shipped).items():
        short = spec.replace(":rc:bpb", ":bpb").replace("mc_olmo3base", "mc")
        short = re.sub(r":olmo3base$", "", short).replace(":", "_")
        assert name == (spec.replace(":", "_") if short in others else short)


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
    suite, spec = described(PARTS.get(name, name), upstream), specs(shipped)
    found = group_weights(name, shipped.groups, {})
    ours = {spec[leaf]: weight for leaf, weight in found.items()}
    if "lambada" in ours and "lambada:olmo3base" in leaves(suite):  # the same task
        ours["lambada:olmo3base"] = ours.pop("lambada")
    assert set(leaves(suite)) - ours.keys() == LEFT_OUT.get(name, set())
    assert ours == pytest.approx(weights(suite, ours), abs=1e-12)
    assert sum(ours.values()) == pytest.approx(1, abs=1e-12)
    if name in HEADLINES:
        metric, scorer = HEADLINES[name]
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
    folder = suite_files(
        tmp_path, mixed=mixed, few=few, wrong={"olmo_eval_suites": ["olmobase:gem"]}
    )
    suite = load_suite(folder, "mixed")
    assert (len(suite.tasks), len(suite.generation_tasks)) == (10, 5)
    assert {"olmobase:gen (ranked)", "olmobase:gen (generated)"} < suite.groups.keys()
    assert load_suite(folder, "few").tasks["hellaswag_rc"].limit == 9  # type: ignore[union-attr]
    with pytest.raises(
        ConfigError,
        match=r"wrong\.yaml: olmo_eval_suites: 'olmobase:gem' .*did you mean olmobase:gen",
    ):
        load_suite(folder, "wrong")
    twice = {**mixed, "tasks": {"hellaswag_rc": own["squad"]}}
    with pytest.raises(ConfigError, match=r"tasks\.hellaswag_rc: .* has this name, too; rename it"):
        load_suite(suite_files(tmp_path, twice=twice), "twice")
