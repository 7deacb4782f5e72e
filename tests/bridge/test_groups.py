"""Means of means: what members weigh, their intervals, and what no mean can hold."""

import math
from pathlib import Path
from typing import Any

import pytest

from evaluation.bridge.deltas import compare
from evaluation.errors import ConfigError
from evaluation.reporting.pages.front_page import write_front_page
from evaluation.reporting.tables.score_matrix import write_matrix
from evaluation.reporting.tables.stage_results import read_stage
from evaluation.reporting.tables.values import values_of
from evaluation.results.read import read_results
from evaluation.settings.groups import Group, group_weights
from evaluation.settings.plan import StagePlan
from tests.bridge.folders import GOLD, SUITE, make_plans, read, write_stage_of

TASK: dict[str, Any] = SUITE["tasks"]["quiz"]
TASKS = dict.fromkeys(("quiz", "exam", "riddles"), TASK)
GROUPS: dict[str, Any] = {
    "core": {"tier": "tier3", "members": ["known", "riddles"]},
    "known": {"tier": "tier3", "members": ["quiz", "exam"]},
    "texts": {"tier": "tier2", "members": ["web", "code"]},
}
SHARES = {"quiz": 0.25, "exam": 0.25, "riddles": 0.5}


def planned(root: Path, *objectives: dict[str, Any], **keys: Any) -> StagePlan:
    suite = {"slices": SUITE["slices"], "tasks": TASKS, "groups": GROUPS, **keys}
    return make_plans(root, suite=suite, objective=list(objectives), steps=(10, 20))["second"]


def written(root: Path, *objectives: dict[str, Any]) -> StagePlan:
    plan = planned(root, *objectives)
    write_stage_of(plan, {n: {"skill": 0.3, "nats": 2.9 - n / 1000} for n in (10, 20)})
    return plan


def test_weights_by_hand() -> None:
    inner = {"members": ["a", "b"], "tier": "tier3"}
    groups = {"inner": inner, "outer": {"members": ["inner", "b", "c"], "tier": "tier3"}}
    sizes = {"a": 10, "b": 30, "c": 60}
    expected = {
        "members": {"a": 1 / 6, "b": 1 / 6 + 1 / 3, "c": 1 / 3},
        "leaves": dict.fromkeys("abc", 1 / 3),
        "questions": {"a": 0.1, "b": 0.3, "c": 0.6},
    }
    for weigh, weights in expected.items():
        models = {n: Group.model_validate({**g, "weigh": weigh}) for n, g in groups.items()}
        if weigh == "members":
            models["inner"] = Group.model_validate(inner)
        assert group_weights("outer", models, sizes) == pytest.approx(weights)


def test_a_group_has_the_interval_of_independent_means(tmp_path: Path) -> None:
    plan = written(tmp_path)
    sides = [read_results(f, plan.tiers) for f in (plan.step_folder(20), plan.bridge_folder)]
    found = {(one.tier, one.item, one.metric): one for one in compare(*sides)}
    for metric in ("delta_acc", "delta_gold_bits_per_byte", "delta_margin"):
        group = found["tier3", "core (group)", metric]
        parts = {name: found["tier3", name, metric].estimate for name in SHARES}
        value = sum(SHARES[name] * part.value for name, part in parts.items())
        se = math.sqrt(sum((SHARES[name] * (part.se or 0)) ** 2 for name, part in parts.items()))
        assert (group.estimate.value, group.estimate.se) == pytest.approx((value, se))
        assert group.estimate.low < value < (group.estimate.high or 0) or metric != "delta_acc"
        assert not group.primary
    assert found["tier3", "exam", "delta_acc"].estimate.units == 20  # clusters
    texts = found["tier2", "texts (group)", "delta_ppl"]
    overall = found["tier2", "overall", "delta_ppl"]
    assert texts.estimate == overall.estimate  # the same slices, of equal weight
    values = {(one.item, one.metric): one for one in values_of(sides[0])}
    accuracies = [SHARES[name] * values[name, "acc"].value for name in SHARES]
    assert values["core (group)", "acc"].value == pytest.approx(sum(accuracies))


def test_objectives_pages_and_tables_have_groups(tmp_path: Path) -> None:
    objective = {"tier": "tier3", "want": "improve", "group": "core", "margin": 0.0}
    plan = written(tmp_path, objective, {**objective, "metric": "gold_bits_per_byte", "average": 3})
    content = read(plan.step_folder(20) / "bridge_deltas.json")
    rows = {(row["item"], row["metric"]): row for row in content["deltas"]}
    for judged in content["objectives"]:
        assert judged["verdict"] == "met"
        assert set(judged["items"]) == set(SHARES)
        assert judged["delta"] == rows["core (group)", judged["metric"]]["delta"]
    advice = read(plan.results / "recommendation.json")
    assert (advice["verdict"], advice["headline"]["group"]) == ("met", "core")
    found = read_stage(plan, (10, 20))
    write_matrix(found)
    lines = (plan.results / "score_matrix.csv").read_text().splitlines()
    items = [line.split(",")[1] for line in lines if line.startswith("tier3")]
    assert items == ["overall", "core (group)", "known (group)", *TASKS]
    assert "core (group) & " in (plan.results / "score_matrix.tex").read_text()
    page = write_front_page({plan.name: plan})
    assert "tier3 accuracy of core (group): " in page.read_text()


@pytest.mark.parametrize(
    ("group", "message"),
    [
        ({"members": ["quiz", "exma"]}, "no task or group 'exma' .did you mean exam"),
        ({"members": ["quiz", "sums"]}, "higher is better .* of quiz, lower .* of sums"),
        ({"members": ["known", "quiz", "new"]}, "in a circle: new > new"),
        ({"members": ["quiz", "quiz"]}, "a member is there twice"),
        ({"members": ["texts"]}, "no task or group 'texts'"),
        ({"tier": "tier4", "members": ["lists"]}, "tier4 has rates over all prompts"),
    ],
)
def test_what_is_no_mean_is_refused(tmp_path: Path, group: Any, message: str) -> None:
    groups = {**GROUPS, "new": {"tier": "tier3", **group}}
    with pytest.raises(ConfigError, match=rf"groups\.new: .*{message}"):
        planned(tmp_path, tasks={**TASKS, "sums": GOLD}, groups=groups)


def test_a_name_means_one_thing(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"groups\.hq: a slice, or the `group` of one, is called so"
    ):
        planned(tmp_path, groups={"hq": {"tier": "tier2", "members": ["web"]}})
