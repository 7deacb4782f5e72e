"""A suite of OlmoBaseEval through the whole workflow: prefill, scores, verdicts, deltas, pages."""

import csv
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from evaluation.settings.olmo_suites import expand_suites
from tests.histories.warm import well
from tests.providers.olmo_eval import environment
from tests.workflow.world import World, build_ladder, build_world

NAME = "olmobase:gen"
GENERATED = tuple(f"{name}_gen" for name in ("drop", "jeopardy", "naturalqs", "squad", "coqa"))
SKILLS = tuple(
    f"basic_skills_{name}_rc"
    for name in (
        *("arithmetic", "coding", "common_knowledge"),
        *("logical_reasoning", "string_operations", "pattern"),
    )
)


@pytest.fixture(scope="module")
def ran(shared: Path, mirrors: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> World:
    """Two stages of it, with three questions of each task, on random weights."""
    python = environment()
    world = build_world(tmp_path_factory.mktemp("suite") / "world")
    for name in ("tokenizer", "ckpts", "hf"):
        shutil.rmtree(world.folder / name)
    shutil.copytree(shared / "reference" / "tokenizer", world.folder / "tokenizer")
    build_ladder(world.folder, vocabulary=49_152, positions=4096)
    whole = expand_suites([NAME])
    few = {
        section: {name: {"limit": 3} for name in whole[section]}
        for section in ("tasks", "generation_tasks")
    }
    suites = {"whole": {"olmo_eval_suites": [NAME]}, "few": {"extends": "whole", "overrides": few}}
    for name, content in suites.items():
        (world.folder / "suites" / f"{name}.yaml").write_text(yaml.safe_dump(content))
    world.change_stage("stage1", suites=["few"], steps=[20])
    objective = {"tier": "tier5", "group": NAME, "want": "improve", "margin": 0.0}
    world.change_stage("stage2", suites=["few"], objective=[objective])
    world.change(mirrors=mirrors, sequence_length=4096, providers={"olmo_eval": str(python)})
    done = well(world.snakemake())
    (world.folder / "said.txt").write_text(done.stderr)
    return world


def rows(world: World) -> dict[tuple[str, str, str], dict[str, Any]]:
    content = world.read("stage2", "by_checkpoint", "step_15", "bridge_deltas.json")
    return {(row["tier"], row["item"], row["metric"]): row for row in content["deltas"]}


def test_the_suites_own_mean_is_over_tasks_of_both_tiers(ran: World) -> None:
    found = rows(ran)
    whole = found["tier5", f"{NAME} (group)", "delta_pass_rate"]
    parts = [
        *(("tier3", name, "delta_acc", 1 / 9) for name in ("hellaswag_rc", "winogrande_rc")),
        ("tier3", "lambada", "delta_greedy", 1 / 9),
        *(("tier3", name, "delta_acc", 1 / 54) for name in SKILLS),
        *(("tier5", name, "delta_pass_rate", 1 / 9) for name in GENERATED),
    ]
    for value in ("value", "bridge_value", "delta"):
        mean = sum(
            weight * found[tier, item, metric][value] for tier, item, metric, weight in parts
        )
        assert whole[value] == pytest.approx(mean, abs=1e-12)
    assert whole["low"] < whole["delta"] < whole["high"]
    assert whole["n"] == 3 * len(parts)
    assert whole["note"] == "a mean over tasks of tier3 and tier5"


def test_the_objective_is_decided_on_it(ran: World) -> None:
    advice = ran.read("stage2", "recommendation.json")
    assert advice["headline"]["group"] == NAME
    assert f"of {NAME} " in (ran.folder / "said.txt").read_text()
    (judged,) = ran.read("stage2", "by_checkpoint", "step_15", "bridge_deltas.json")["objectives"]
    assert set(judged["items"]) == {"hellaswag_rc", "winogrande_rc", "lambada", *SKILLS, *GENERATED}


def test_tables_and_pages_show_all_three_groups(ran: World) -> None:
    names = {f"{NAME}{kind} (group)" for kind in ("", " (ranked)", " (generated)")}
    with ran.results("stage2", "score_matrix.csv").open(newline="") as file:
        items = [row["item"] for row in csv.DictReader(file)]
    assert names < set(items)
    assert len(items) == 2 + 4 + 9 + 5  # overall, groups, tasks of each tier
    for path in ("score_matrix.tex", "summary.md"):
        text = ran.results("stage2", path).read_text().replace("\\", "")
        assert all(name in text for name in names), path
    page = ran.results("report.html").read_text()
    assert f"tier5 pass rate of {NAME} (group): " in page
    assert not re.search("both sides .* its variance", page)  # of one checkpoint's own score


def test_nothing_is_done_twice(ran: World) -> None:
    done = well(ran.snakemake())
    assert "Nothing to be done" in done.stdout + done.stderr
