"""A model that was scored once, as a level in curves: where it shares items, and nowhere else."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evaluation.dependencies.other_runs import references
from evaluation.reporting.comparison import write_configured
from evaluation.reporting.pages.front_page import write_front_page
from evaluation.settings.plan import StagePlan
from evaluation.settings.runs import OtherRun
from tests.bridge.folders import edit_json, edited
from tests.reporting.pages import page_data, write_report
from tests.runs.folders import write_run

STEPS = (10, 20)
SMALL: dict[str, Any] = {"steps": STEPS, "items": 60, "blocks": 20, "prompts": 12}


@pytest.fixture
def plan(tmp_path: Path) -> StagePlan:
    """A run whose configuration names a public model."""
    plan = write_run(tmp_path / "a", number=1, **SMALL)
    for step in STEPS:
        plan.checkpoint(step).mkdir(parents=True)
    public = write_run(tmp_path / "public", number=9, **{**SMALL, "steps": (0,)})
    runs = {"public": OtherRun(path=str(public.step_folder(0)))}
    return replace(plan, config=plan.config.model_copy(update={"runs": runs}))


def folder(plan: StagePlan) -> Path:
    return references(plan.config)["public"]


def drawn(page: Path, curves: bool = False) -> dict[tuple[str, str, str], float]:
    """Values of the levels on a page by tier, item and metric."""
    data = page_data(page)
    series = data["curves"][0]["series"] if curves else data["series"]
    found = {}
    for one in series:
        for level in one.get("levels", ()):
            assert level["name"] == "public"
            found[one["tier"], one["item"], one["metric"]] = level["value"]
    return found


def test_a_line_in_every_curve(plan: StagePlan) -> None:
    public = json.loads((folder(plan) / "tier3_cf.json").read_text())
    slices = json.loads((folder(plan) / "tier2_ppl.json").read_text())["slices"]
    files, errors = write_configured({"second": plan})
    assert errors == []
    for found in (drawn(files[-1], curves=True), drawn(write_report(plan, STEPS))):
        assert found["tier3", "quiz", "acc"] == pytest.approx(public["tasks"]["quiz"]["accuracy"])
        assert found["tier3", "overall", "acc"] == pytest.approx(public["overall"]["accuracy"])
        assert found["tier2", "web", "ppl"] == pytest.approx(slices["web"]["ppl"])
        assert ("tier4", "overall", "all_checks_pass_rate") in found
    front = write_front_page({"second": plan})
    assert drawn(front)["tier2", "web", "ppl"] == pytest.approx(slices["web"]["ppl"])
    assert 'data-page="comparison.html"' in front.read_text()


def test_another_tokenizer(plan: StagePlan) -> None:
    for file in ("tier2_ppl.json", "tier3_cf.json", "tier4_sft_native.json"):
        edit_json(folder(plan) / file, tokenizer={"name": "other", "fingerprint": "other"})
    found = drawn(write_report(plan, STEPS))
    assert {metric for tier, _, metric in found if tier == "tier2"} == {"bits_per_byte"}
    assert ("tier3", "quiz", "acc") in found


def test_no_mean_of_other_items(plan: StagePlan) -> None:
    with edited(folder(plan) / "tier3_cf.json") as content:
        del content["tasks"]["exam"]
    found = drawn(write_report(plan, STEPS))
    assert ("tier3", "quiz", "acc") in found
    assert ("tier3", "overall", "acc") not in found
    assert ("tier2", "overall", "ppl") in found


@pytest.mark.parametrize(
    ("damage", "words"),
    [({"protocol": "test-2"}, "public has no line in tier3: protocol: "), ({"tasks": 1}, "tasks")],
)
def test_what_has_no_line_is_said(plan: StagePlan, damage: dict[str, Any], words: str) -> None:
    edit_json(folder(plan) / "tier3_cf.json", **damage)
    page = write_report(plan, STEPS)
    assert words in page.read_text()
    assert not any(tier == "tier3" for tier, _, _ in drawn(page))
