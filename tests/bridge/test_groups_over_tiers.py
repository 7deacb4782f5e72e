"""A mean over items of several tiers, held to arithmetic that is written out here."""

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from evaluation.bridge.deltas import compare
from evaluation.errors import ConfigError
from evaluation.reporting.pages.front_page import write_front_page
from evaluation.reporting.tables.quality_advice import advice_of
from evaluation.reporting.tables.score_matrix import write_matrix
from evaluation.reporting.tables.stage_results import read_stage
from evaluation.reporting.tables.task_quality import write_quality
from evaluation.reporting.tables.values import values_of
from evaluation.results.read import read_results
from evaluation.settings.plan import StagePlan
from tests.bridge.folders import GOLD, SUITE, make_plans, read, write_stage_of

TASKS: dict[str, Any] = {"quiz": SUITE["tasks"]["quiz"], "riddles": SUITE["tasks"]["quiz"]}
GROUPS: dict[str, Any] = {
    "choices": {"tier": "tier3", "members": ["quiz", "riddles"]},
    "whole": {
        "tier": "tier5",
        "also": ["tier3"],
        "greedy": ["last_word"],
        "members": ["choices", "last_word", "sums"],
    },
}
SHARES = {"quiz": 1 / 6, "riddles": 1 / 6, "last_word": 1 / 3, "sums": 1 / 3}
OBJECTIVE = {"tier": "tier5", "group": "whole", "want": "improve", "margin": 0.0}


def planned(root: Path, *objectives: dict[str, Any], **group: Any) -> StagePlan:
    suite = {
        "tasks": {**TASKS, "last_word": GOLD},
        "generation_tasks": SUITE["generation_tasks"],
        "groups": {**GROUPS, "whole": {**GROUPS["whole"], **group}},
    }
    return make_plans(root, suite=suite, objective=list(objectives), steps=(10, 20, 30))["second"]


def written(root: Path, *objectives: dict[str, Any], skill: float = 0.3) -> StagePlan:
    plan = planned(root, *objectives)
    write_stage_of(plan, {n: {"skill": skill} for n in (10, 20, 30)})
    return plan


def questions(folder: Path) -> dict[str, Any]:
    """What each question of a side counts, from its tables alone; NaN without a verdict."""
    columns = pq.read_table(folder / "tier3_cf_candidates.parquet").to_pydict()
    names = np.array(columns["task"])
    found = {}
    for name in ("quiz", "riddles"):
        logprobs = np.array(columns["logprob"])[names == name].reshape(-1, 4)
        found[name] = (logprobs.argmax(axis=1) == 0).astype(float)
    found["last_word"] = np.array(columns["is_greedy"])[names == "last_word"].astype(float)
    prompts = pq.read_table(folder / "tier5_verified_prompts.parquet").to_pylist()
    rates = [row["pass_rate"] for row in prompts if row["verifier"] == "lenient"]
    return found | {"sums": np.array(rates, dtype=float)}


def by_hand(ours: Path, theirs: Path) -> tuple[float, float]:
    """The weighted mean of the tasks' paired differences, and its standard error."""
    mine, other = questions(ours), questions(theirs)
    value, variance = 0.0, 0.0
    for name, share in SHARES.items():
        differences = mine[name] - other[name]
        strata = np.arange(len(differences)) % (2 if name == "sums" else 1)
        known = ~np.isnan(differences)
        differences, strata = differences[known], strata[known]
        value += share * differences.mean()
        for stratum in set(strata):
            own = differences[strata == stratum]
            part = len(own) / len(differences)
            variance += share**2 * part**2 * own.var(ddof=1) / len(own)
    return value, math.sqrt(variance)


def test_the_mean_and_its_interval_by_hand(tmp_path: Path) -> None:
    plan = written(tmp_path)
    for step in (10, 20):
        folders = plan.step_folder(step), plan.bridge_folder
        sides = [read_results(folder, plan.tiers) for folder in folders]
        (whole,) = (one for one in compare(*sides) if one.item == "whole (group)")
        known = whole.estimate
        assert (known.value, known.se) == pytest.approx(by_hand(*folders), abs=1e-12)
        assert known.low < known.value < known.high  # type: ignore[operator]
        assert (whole.tier, whole.metric, whole.primary) == ("tier5", "delta_pass_rate", False)
        assert whole.flag == "better"
        for side, folder in zip(sides, folders, strict=True):
            (value,) = (one for one in values_of(side) if one.item == "whole (group)")
            means = {name: np.nanmean(one) for name, one in questions(folder).items()}
            expected = sum(share * means[name] for name, share in SHARES.items())
            assert value.value == pytest.approx(expected, abs=1e-12)
            assert value.low < value.value < value.high  # type: ignore[operator]


def test_objectives_pages_and_tables_have_it(tmp_path: Path) -> None:
    plan = written(tmp_path, {**OBJECTIVE, "average": 3})
    content = read(plan.step_folder(20) / "bridge_deltas.json")
    (row,) = (row for row in content["deltas"] if row["item"] == "whole (group)")
    (judged,) = content["objectives"]
    assert (judged["verdict"], judged["delta"]) == ("met", row["delta"])
    assert set(judged["items"]) == set(SHARES)
    advice = read(plan.results / "recommendation.json")
    assert (advice["verdict"], advice["headline"]["group"]) == ("met", "whole")
    (average,) = advice["averages"]
    deltas = [by_hand(plan.step_folder(n), plan.bridge_folder)[0] for n in (10, 20, 30)]
    assert average["delta"] == pytest.approx(np.mean(deltas), abs=0.01)  # other prompts fail
    assert average["se_checkpoints"] is not None
    found = read_stage(plan, (10, 20, 30))
    write_matrix(found)
    lines = (plan.results / "score_matrix.csv").read_text().splitlines()
    items = [line.split(",")[1] for line in lines if line.startswith("tier5")]
    assert items == ["overall", "whole (group)", "sums"]
    assert "whole (group) & " in (plan.results / "score_matrix.tex").read_text()
    page = write_front_page({plan.name: plan})
    assert "tier5 pass rate of whole (group): " in page.read_text()


def test_a_loss_of_one_task_of_any_tier_breaks_a_keep(tmp_path: Path) -> None:
    keep = {**OBJECTIVE, "want": "keep", "margin": 0.02}
    plan = written(tmp_path, keep, skill=-1.0)
    (judged,) = read(plan.step_folder(20) / "bridge_deltas.json")["objectives"]
    assert judged["verdict"] == "not met"
    assert {"quiz", "riddles", "last_word"} <= set(judged["regressions"])


@pytest.mark.parametrize(
    ("group", "message"),
    [
        (
            {"greedy": []},
            "lower is better for the bits per byte of last_word, .* add it to `greedy`",
        ),
        ({"greedy": ["last_word", "quiz"]}, "greedy: 'quiz' is no member that has no choices"),
        ({"also": ["tier2"], "greedy": []}, "no mean over tiers holds the nats per token of tier2"),
        ({"also": ["tier4"], "greedy": []}, "no mean over tiers holds the .* of tier4"),
        ({"also": ["tier3", "tier3"]}, "name each tier once, in order, and the last as `tier`"),
        ({"tier": "tier3", "also": ["tier5"]}, "the last as `tier`: tier3, tier5"),
        ({"weigh": "questions"}, "of several tiers are not of one kind; set `leaves`"),
        ({"also": [], "members": ["sums"]}, "greedy: it is for members from several tiers"),
        ({"also": [], "greedy": []}, "tier5 has no task or group 'choices'"),
        (
            {"members": ["choices", "sum"], "greedy": []},
            "no task or group 'sum' .did you mean sums",
        ),
    ],
)
def test_what_is_no_mean_is_refused(tmp_path: Path, group: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=rf"groups\.whole: .*{message}"):
        planned(tmp_path, **group)


def test_one_name_in_two_tiers_is_refused(tmp_path: Path) -> None:
    suite = {
        "tasks": {"quiz": TASKS["quiz"], "sums": TASKS["quiz"]},
        "generation_tasks": SUITE["generation_tasks"],
        "groups": {"whole": {"tier": "tier5", "also": ["tier3"], "members": ["quiz", "sums"]}},
    }
    with pytest.raises(ConfigError, match="members: 'sums' is in two of its tiers; rename one"):
        make_plans(tmp_path, suite=suite)


def test_advice_counts_the_tasks_of_all_its_tiers(tmp_path: Path) -> None:
    plan = written(tmp_path, OBJECTIVE, skill=0.0)
    found = read_stage(plan, (10, 20, 30))
    (sentence,) = advice_of(found, write_quality(found).rows)
    assert re.match(
        r"tier5: pass rate of whole is undecided; a difference of .* in the mean of 4 tasks takes "
        r".* times as many questions and prompts",
        sentence,
    )
