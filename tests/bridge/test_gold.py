"""Tasks that rank nothing: decided on bits per byte, and never in one mean with accuracies."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluation.errors import ConfigError
from evaluation.reporting.tables.score_matrix import write_matrix
from evaluation.reporting.tables.stage_results import read_stage
from evaluation.reporting.terminal import bridge_table
from evaluation.settings.plan import StagePlan
from tests.bridge.folders import GOLD, SUITE, make_plans, read, write_stage_of

BITS, ACC, GREEDY = "delta_gold_bits_per_byte", "delta_acc", "delta_greedy"
QUIZ: dict[str, Any] = SUITE["tasks"]["quiz"]
MIXED = {"quiz": QUIZ, "sums": {**GOLD, "group": "math"}, "code": {**GOLD, "group": "math"}}


def improve(**keys: Any) -> dict[str, Any]:
    return {"tier": "tier3", "want": "improve", "margin": 0.0, **keys}


def compared(
    root: Path, tasks: dict[str, Any], *objectives: dict[str, Any]
) -> tuple[StagePlan, Any]:
    suite = {"tasks": tasks}
    plan = make_plans(root, suite=suite, objective=list(objectives), steps=(10,))["second"]
    write_stage_of(plan, {10: {"skill": 0.3, "seed": 1}})
    return plan, read(plan.step_folder(10) / "bridge_deltas.json")


def test_each_headline_has_a_mean_of_its_own(tmp_path: Path) -> None:
    objectives = improve(metric="acc"), improve(group="math"), improve(metric="greedy")
    plan, content = compared(tmp_path, MIXED, *objectives)
    rows = {(row["item"], row["metric"]): row for row in content["deltas"]}
    primary = {key for key, row in rows.items() if row["primary"]}
    assert primary == {("quiz", ACC), ("sums", BITS), ("code", BITS)}
    assert all(rows[key]["flag"] == "better" and rows[key]["p_holm"] < 0.05 for key in primary)
    assert rows["overall", ACC]["value"] == rows["quiz", ACC]["value"]
    for metric, names in ((BITS, ("quiz", "sums", "code")), (GREEDY, ("sums", "code"))):
        mean = np.mean([rows[name, metric]["delta"] for name in names])
        assert rows["overall", metric]["delta"] == pytest.approx(mean)
    assert rows["overall", BITS]["flag"] is None  # next to accuracy
    assert rows["overall", GREEDY]["flag"] is None  # next to bits per byte
    decided = [
        (objective["metric"], objective["items"], objective["verdict"])
        for objective in content["objectives"]
    ]
    assert decided == [
        (ACC, ["quiz"], "met"),
        (BITS, ["sums", "code"], "met"),
        (GREEDY, ["sums", "code"], "met"),
    ]
    assert plan.stage.objective[1].metric == "gold_bits_per_byte"


def test_without_choices_bits_per_byte_are_the_headline_everywhere(tmp_path: Path) -> None:
    plan, content = compared(tmp_path, {"sums": GOLD, "code": GOLD}, improve())
    rows = {(row["item"], row["metric"]): row for row in content["deltas"]}
    assert {metric for _, metric in rows} == {BITS, GREEDY}
    assert rows["overall", BITS]["flag"] == "better"
    assert rows["overall", GREEDY]["flag"] is None
    assert (content["objectives"][0]["metric"], content["verdict"]) == (BITS, "met")
    advice = read(plan.results / "recommendation.json")
    assert advice["headline"]["metric"] == "gold_bits_per_byte"
    assert "tier3 Δgold_bits_per_byte" in bridge_table({plan.name: plan})
    write_matrix(read_stage(plan, (10,)))
    table = (plan.results / "score_matrix.csv").read_text().splitlines()
    assert [line.split(",")[:3] for line in table[1:]] == [
        ["tier3", item, "gold_bits_per_byte"] for item in ("overall", "sums", "code")
    ]
    assert "bits per byte)" in (plan.results / "score_matrix.tex").read_text()


def test_a_matrix_keeps_the_two_apart(tmp_path: Path) -> None:
    plan, _ = compared(tmp_path, MIXED)
    write_matrix(read_stage(plan, (10,)))
    rows = (plan.results / "score_matrix.csv").read_text().splitlines()[1:]
    bits = "gold_bits_per_byte"
    expected = [("overall", "acc"), ("quiz", "acc"), ("sums", bits), ("code", bits)]
    assert [tuple(row.split(",")[1:3]) for row in rows] == expected


def test_summaries_alone_are_compared_without_intervals(tmp_path: Path) -> None:
    plan = make_plans(tmp_path, suite={"tasks": MIXED}, command="true", objective=[])["second"]
    external = {"per_item": False, "protocol": "external: x"}
    write_stage_of(plan, {10: {"skill": 0.3, "seed": 0, **external}}, **external)
    content = read(plan.step_folder(10) / "bridge_deltas.json")
    rows = {(row["item"], row["metric"]): row for row in content["deltas"]}
    assert rows["sums", BITS]["delta"] < 0
    assert rows["sums", BITS]["low"] is None
    assert rows["overall", GREEDY]["delta"] > 0


@pytest.mark.parametrize(
    ("objective", "message"),
    [
        ({}, "quiz ranks choices and code has none.*set `metric: gold_bits_per_byte`"),
        (
            {"group": "math", "metric": "acc"},
            "metric: no metric 'acc' of code; there are gold_bits",
        ),
    ],
)
def test_an_objective_that_no_mean_fits_is_refused(
    tmp_path: Path, objective: Any, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        make_plans(tmp_path, suite={"tasks": MIXED}, objective=[improve(**objective)])


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"gold": "0"}, "`gold` is of ranked `choices`"),
        ({"primary": "per_char"}, "`primary` is of ranked `choices`"),
        ({"continuation": None}, "give `choices` to rank, or `continuation`"),
        ({"choices": "c"}, "`choices` need `gold`"),
    ],
)
def test_half_a_task_is_refused(tmp_path: Path, keys: dict[str, Any], message: str) -> None:
    task = {key: value for key, value in {**GOLD, **keys}.items() if value is not None}
    with pytest.raises(ConfigError, match=message):
        make_plans(tmp_path, suite={"tasks": {"sums": task}})
