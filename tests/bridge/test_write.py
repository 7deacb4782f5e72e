"""Files of the bridge, from results with planted differences."""

from pathlib import Path
from typing import Any

import pytest

from evaluation.bridge.verdicts import objective_verdicts
from evaluation.bridge.write import write_deltas
from evaluation.errors import BridgeError, EvaluationError
from evaluation.settings.objectives import Objective
from evaluation.settings.plan import StagePlan
from tests.bridge.folders import edit_json, make_plans, read, write_side, write_stage_of

OTHER = {"name": "a", "fingerprint": "other"}


def two_sides(
    root: Path, *, objective: list[dict[str, Any]] | None = None, **ours: Any
) -> tuple[StagePlan, Path]:
    """The plan of a stage whose step 10 and bridge are scored, and the folder of that step."""
    plan = make_plans(root, steps=(10,), objective=objective)["second"]
    write_side(plan.bridge_folder, plan, step=100)
    return plan, write_side(plan.step_folder(10), plan, step=10, **{"seed": 1, **ours})


def deltas(plan: StagePlan) -> Any:
    write_deltas(plan, 10)
    return read(plan.step_folder(10) / "bridge_deltas.json")


def row(content: dict[str, Any], tier: str, item: str, metric: str) -> dict[str, Any]:
    keys = ("tier", "item", "metric")
    return next(r for r in content["deltas"] if tuple(r[k] for k in keys) == (tier, item, metric))


def test_planted_gains_are_found_and_recorded(tmp_path: Path) -> None:
    plan, folder = two_sides(tmp_path, skill=0.6, nats=2.9)
    content = deltas(plan)
    assert content["verdict"] == "met"
    ppl = row(content, "tier2", "web", "delta_ppl")
    assert ppl["delta"] == pytest.approx(ppl["value"] - ppl["bridge_value"])
    assert ppl["low"] < ppl["delta"] < ppl["high"] < 0
    assert (ppl["higher_is_better"], ppl["flag"]) == (False, "better")
    nats = row(content, "tier2", "web", "delta_nats_per_token")
    assert nats["low"] < -0.1 < nats["high"]
    mean = row(content, "tier2", "overall", "delta_ppl")
    assert mean["value"] == pytest.approx(read(folder / "tier2_ppl.json")["overall"]["ppl"])
    assert mean["low"] < mean["delta"] < mean["high"]
    assert row(content, "tier3", "exam", "delta_acc")["n"] == 400
    assert row(content, "tier4", "overall", "delta_truncated_rate")["higher_is_better"] is False
    assert row(content, "tier4", "lists", "delta_all_checks_pass_rate")["n"] == 24
    primary = [r for r in content["deltas"] if r["primary"]]
    assert all(r["p_holm"] >= r["p"] for r in primary)


def test_a_stage_gets_a_recommendation(tmp_path: Path) -> None:
    plan = make_plans(tmp_path)["second"]
    settings = {10: (0.6, 3.0), 20: (1.2, 2.9), 30: (2.0, 3.3)}
    write_stage_of(plan, {n: {"skill": s, "nats": nats} for n, (s, nats) in settings.items()})
    advice = read(plan.results / "recommendation.json")
    assert [v["verdict"] for v in advice["verdicts"]] == ["met", "met", "not met"]
    assert (advice["step"], advice["verdict"]) == (20, "met")
    assert advice["checkpoint"] == "/ckpts/second/20"
    assert advice["runner_up"] == {"step": 10, "verdict": "met", "why": "significantly behind"}


def test_the_same_weights_change_nothing(tmp_path: Path) -> None:
    plan, _ = two_sides(tmp_path, seed=0)
    content = deltas(plan)
    for about in (("tier2", "web", "delta_nats_per_token"), ("tier3", "quiz", "delta_acc")):
        found = row(content, *about)
        assert [found[key] for key in ("delta", "low", "high", "p")] == [0, 0, 0, 1]
        assert "same on every item" in found["note"]
    assert [one["verdict"] for one in content["objectives"] if one["want"] == "keep"] == ["met"]


@pytest.mark.parametrize(
    ("command", "sizes", "note"),
    [
        (None, {"items": 1, "blocks": 1, "prompts": 1}, "no interval"),
        ("launch", {"per_item": False, "protocol": "external: launch"}, "external command"),
    ],
)
def test_single_items_and_external_results_have_no_interval(
    tmp_path: Path, command: str | None, sizes: dict[str, Any], note: str
) -> None:
    tiers = ("slices", "tasks") if command else ("slices", "tasks", "probes")
    plan = make_plans(tmp_path, command=command, tiers=tiers)["second"]
    write_stage_of(plan, {10: sizes}, **sizes)
    content = read(plan.step_folder(10) / "bridge_deltas.json")
    assert {"web", "code", "quiz", "exam", "overall"} <= {r["item"] for r in content["deltas"]}
    assert all(r["low"] is None and note in r["note"] for r in content["deltas"])
    assert content["verdict"] == "undecided"


@pytest.mark.parametrize(
    ("file", "changes", "message"),
    [
        ("tier2_ppl.json", {"protocol": "test-2"}, "protocol: 'test-2'"),
        ("tier3_cf.json", {"tokenizer": OTHER}, "tokenizer: 'other'"),
        ("tier2_ppl.json", {"sequence_length": 128}, "sequence length: 128"),
        ("tier4_sft_native.json", {"data_checksum": "x"}, "prompts: 'x'"),
        ("tier3_cf.json", {"tasks": {}}, "tasks is {}: "),
    ],
)
def test_refusals(tmp_path: Path, file: str, changes: dict[str, Any], message: str) -> None:
    plan, folder = two_sides(tmp_path)
    edit_json(folder / file, **changes)
    with pytest.raises(EvaluationError, match=message) as caught:
        write_deltas(plan, 10)
    assert str(folder) in str(caught.value)
    assert not (folder / "bridge_deltas.json").exists()


def test_an_objective_at_what_was_not_scored_is_refused() -> None:
    objective = Objective(tier="tier2", want="improve", group="nowhere", margin=0.0)
    with pytest.raises(BridgeError, match=r"stages\.second\.objective\.0.*'nowhere'"):
        objective_verdicts([objective], [], "second")
