"""Means of means: held to arithmetic that is written out here."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from evaluation.bridge.deltas import compare
from evaluation.errors import ConfigError
from evaluation.files import write_json
from evaluation.reporting.tables.side_by_side import side_by_side
from evaluation.reporting.tables.values import values_of
from evaluation.results.read import read_results
from evaluation.settings.groups import group_weights
from evaluation.settings.plan import StagePlan
from tests.bridge.folders import GOLD, SUITE, make_plans, read, write_stage_of

QUIZ: dict[str, Any] = SUITE["tasks"]["quiz"]
TASKS = {**dict.fromkeys(("quiz", "exam", "riddles"), QUIZ), "last_word": GOLD}
CORE = {"quiz": 0.25, "exam": 0.25, "riddles": 0.5}
CHOICES = {"quiz": 0.5, "riddles": 0.5}
GROUPS: dict[str, Any] = {
    "core": {"tier": "tier3", "members": ["known", "riddles"]},
    "known": {"tier": "tier3", "members": ["quiz", "exam"]},
    "texts": {"tier": "tier2", "members": ["web", "code"]},
    "choices": {"tier": "tier3", "members": ["quiz", "riddles"]},
}
CENTERED = {"tier": "tier3", "members": ["quiz", "riddles"], "centered": True}
OF_CORE = {"tier": "tier3", "group": "core", "want": "improve", "margin": 0.0}
STEPS = (10, 20, 30)


def planned(
    root: Path, *objectives: dict[str, Any], group: str = "core", **changes: Any
) -> StagePlan:
    groups = {**GROUPS, group: {**GROUPS.get(group, {"tier": "tier3"}), **changes}}
    suite = {**SUITE, "tasks": TASKS, "groups": groups}
    del suite["probes"]
    return make_plans(root, suite=suite, objective=list(objectives), steps=STEPS)["second"]


def written(root: Path, *objectives: dict[str, Any], skill: float = 0.3) -> StagePlan:
    plan = planned(root, *objectives)
    write_stage_of(plan, {n: {"skill": skill, "nats": 2.9 - n / 1000} for n in STEPS})
    return plan


def questions(folder: Path) -> dict[str, Any]:
    """What each question of a side counts, from its table alone."""
    columns = pq.read_table(folder / "tier3_cf_candidates.parquet").to_pydict()
    names, found = np.array(columns["task"]), {}
    for name in CHOICES:
        logprobs = np.array(columns["logprob"])[names == name].reshape(-1, 4)
        found[name] = (logprobs.argmax(axis=1) == 0).astype(float)
    return found


def by_hand(ours: Path, theirs: Path) -> tuple[float, float]:
    """The weighted mean of the tasks' paired differences, and its standard error."""
    mine, other = questions(ours), questions(theirs)
    value, variance = 0.0, 0.0
    for name, share in CHOICES.items():
        differences = mine[name] - other[name]
        value += share * differences.mean()
        variance += share**2 * differences.var(ddof=1) / len(differences)
    return value, math.sqrt(variance)


def test_means_and_their_intervals_by_hand(tmp_path: Path) -> None:
    plan = written(tmp_path)
    folders = plan.step_folder(20), plan.bridge_folder
    sides = [read_results(folder, plan.tiers) for folder in folders]
    found = {(one.tier, one.item, one.metric): one for one in compare(*sides)}
    for metric in ("delta_acc", "delta_gold_bits_per_byte"):
        group = found["tier3", "core (group)", metric]
        parts = {name: found["tier3", name, metric].estimate for name in CORE}
        value = sum(CORE[name] * part.value for name, part in parts.items())
        se = math.hypot(*(CORE[name] * part.se for name, part in parts.items()))
        assert (group.estimate.value, group.estimate.se) == pytest.approx((value, se))
    assert found["tier3", "exam", "delta_acc"].estimate.units == 20  # clusters
    texts, overall = (found["tier2", item, "delta_ppl"] for item in ("texts (group)", "overall"))
    assert texts.estimate == overall.estimate  # the same slices, of equal weight
    known = found["tier3", "choices (group)", "delta_acc"].estimate
    assert (known.value, known.se) == pytest.approx(by_hand(*folders), abs=1e-12)
    for side, folder in zip(sides, folders, strict=True):
        values = {(one.item, one.metric): one for one in values_of(side)}
        mean = values["choices (group)", "acc"]
        expected = np.mean([one.mean() for one in questions(folder).values()])
        assert mean.value == pytest.approx(expected, abs=1e-12)
        assert mean.low < mean.value < mean.high


def test_a_centered_group_is_zero_at_chance(tmp_path: Path) -> None:
    plan = planned(tmp_path, {**OF_CORE, "group": "fair"}, group="fair", **CENTERED)
    write_stage_of(plan, {n: {"skill": 0.3, "nats": 2.9} for n in STEPS})
    folders = plan.step_folder(20), plan.bridge_folder
    ours, theirs = (read_results(folder, plan.tiers) for folder in folders)
    deltas = compare(ours, theirs)
    assert {one.metric for one in deltas if one.item == "fair (group)"} == {"delta_acc"}
    found = {one.item: one for one in deltas if one.metric == "delta_acc"}
    fair, plain = found["fair (group)"], found["choices (group)"]
    assert fair.value == pytest.approx((plain.value - 0.25) / 0.75)
    for name in ("value", "se", "low", "high"):
        ratio = getattr(fair.estimate, name) / getattr(plain.estimate, name)
        assert ratio == pytest.approx(1 / 0.75), name
    levels = {one.item: one for one in values_of(ours) if one.metric == "acc"}
    fair_level, level = levels["fair (group)"], levels["choices (group)"]
    assert (fair_level.value, fair_level.chance) == (pytest.approx(fair.value), 0.0)
    assert fair_level.low == pytest.approx((level.low - 0.25) / 0.75)
    content = read(plan.step_folder(20) / "bridge_deltas.json")
    assert content["objectives"][0]["delta"] == fair.estimate.value


def test_the_larger_of_two_forms_has_a_delta_where_both_sides_take_one(tmp_path: Path) -> None:
    larger = {"group": "better", "members": ["quiz", "riddles"], "weigh": "larger"}
    plan = planned(tmp_path, **larger)
    values = {"quiz": 0.4, "riddles": 0.6}
    assert group_weights("better", plan.suite.groups, {}, values) == {"riddles": 1.0}
    write_stage_of(plan, {n: {"skill": 0.3, "nats": 2.9} for n in STEPS})  # all take quiz
    for is_same in (True, False):
        sides = [read_results(f, plan.tiers) for f in (plan.step_folder(20), plan.bridge_folder)]
        deltas = {one.item: one for one in compare(*sides) if one.metric == "delta_acc"}
        levels = {one.item: one for one in values_of(sides[1]) if one.metric == "acc"}
        taken = "quiz" if is_same else "riddles"
        assert levels["better (group)"].value == levels[taken].value
        assert levels["better (group)"].low == levels[taken].low
        assert ("better (group)" in deltas) == is_same
        assert not is_same or deltas["better (group)"].estimate.se == deltas["quiz"].estimate.se
        content = read(plan.bridge_folder / "tier3_cf.json")
        content["groups"]["better"] = {"riddles": 1.0}
        write_json(plan.bridge_folder / "tier3_cf.json", content)
    with pytest.raises(ConfigError, match="better takes the larger"):
        planned(tmp_path, {**OF_CORE, "group": "better"}, **larger)


def test_objectives_pages_and_tables_have_groups(tmp_path: Path) -> None:
    bits = {**OF_CORE, "metric": "gold_bits_per_byte"}
    plan = written(tmp_path, OF_CORE, bits, {**OF_CORE, "group": "choices"})
    content = read(plan.step_folder(20) / "bridge_deltas.json")
    rows = {(row["item"], row["metric"]): row for row in content["deltas"]}
    for judged, items in zip(content["objectives"], (CORE, CORE, CHOICES), strict=True):
        group = f"{judged['group']} (group)"
        assert judged["verdict"] == "met"
        assert judged["delta"] == rows[group, judged["metric"]]["delta"]
        assert set(judged["items"]) == set(items)
    advice = read(plan.results / "recommendation.json")
    assert (advice["verdict"], advice["headline"]["group"]) == ("met", "core")
    shown, _ = side_by_side({"step 20": plan.step_folder(20)})
    names = [f"{name} (group)" for name in ("core", "known", "choices")]
    assert [row["item"] for row in shown if row["tier"] == "tier3"] == ["overall", *names, *TASKS]
