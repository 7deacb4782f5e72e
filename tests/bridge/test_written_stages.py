"""Random stages, written as files: no two places contradict each other.

Each claim is checked against the text of the files, pages and commands alone.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluation.bridge.estimate import ALPHA
from evaluation.bridge.write import write_stage
from evaluation.runs.compare import compare_checkpoints
from evaluation.settings.plan import StagePlan
from tests.bridge.folders import make_plans, read, write_side, write_stage_of
from tests.reporting.pages import rows_of

OBJECTIVES = (
    [{"tier": "tier3", "want": "improve", "margin": 0.0}],
    [
        {"tier": "tier3", "want": "improve", "margin": 0.01},
        {"tier": "tier2", "want": "keep", "margin": 0.02},
    ],
    [
        {"tier": "tier2", "want": "improve", "margin": 0.0, "group": "hq"},
        {"tier": "tier3", "want": "keep", "margin": 0.02},
    ],
    [
        {"tier": "tier3", "want": "keep", "margin": 0.01},
        {"tier": "tier2", "want": "keep", "margin": 0.01},
        {"tier": "tier4", "want": "keep", "margin": 0.05},
    ],
    [{"tier": "tier3", "want": "improve", "margin": 0.0, "metric": "gold_bits_per_byte"}],
    [{"tier": "tier4", "want": "improve", "margin": 0.0}],
)
ORDER = ("not met", "undecided", "met")


@dataclass(frozen=True)
class Written:
    """A stage's files as their readers see them."""

    plan: StagePlan
    steps: tuple[int, ...]
    deltas: Any
    advice: Any

    @property
    def verdicts(self) -> dict[int, Any]:
        return {entry["step"]: entry for entry in self.deltas["verdicts"]}

    def own(self, step: int) -> Any:
        return read(self.plan.step_folder(step) / "bridge_deltas.json")


def drawn(root: Path, seed: int) -> Written:
    """Up to five checkpoints around the bridge, or all better or worse, by an objective at random."""
    dice = np.random.default_rng(seed)
    steps = tuple(range(10, 10 + 10 * int(dice.integers(1, 6)), 10))
    plans = make_plans(root, steps=steps, objective=OBJECTIVES[seed % len(OBJECTIVES)])
    plan, common = plans["second"], dice.normal(0, 0.08)
    sizes = {
        "items": int(dice.choice([20, 60, 300])),
        "blocks": int(dice.choice([20, 90])),
        "prompts": int(dice.choice([12, 48])),
    }
    sides = {
        step: {
            "skill": float(common + dice.normal(0, 0.06)),
            "nats": float(3 - common / 5 + dice.normal(0, 0.02)),
            **sizes,
        }
        for step in steps
    }
    first = plans["first"]
    write_side(first.step_folder(100), first, step=100, **sizes)
    for step in steps:
        plan.checkpoint(step).mkdir(parents=True)
    write_stage_of(plan, sides, **sizes)
    return written(plan, steps)


def written(plan: StagePlan, steps: tuple[int, ...]) -> Written:
    files = (read(plan.results / name) for name in ("bridge_deltas.json", "recommendation.json"))
    return Written(plan, steps, *files)


def key_of(row: Any) -> tuple[Any, ...]:
    return tuple(row[key] or None for key in ("tier", "item", "metric"))


def contradictions(stage: Written) -> list[str]:
    return [
        *_of_steps_and_stage(stage),
        *_of_rows(stage),
        *_of_recommendation(stage),
        *_of_pairs(stage),
    ]


def _of_steps_and_stage(stage: Written) -> list[str]:
    """A step's own file, the stage's file and its table hold the same rows and verdicts."""
    said = []
    table = rows_of(stage.plan.results / "bridge_deltas.csv")
    for step in stage.steps:
        own, entry = stage.own(step), stage.verdicts[step]
        if own["verdict"] != entry["own_verdict"]:
            said.append(f"{step}: own file {own['verdict']}, stage's {entry['own_verdict']}")
        if entry["verdict"] != "undecided" and entry["verdict"] != own["verdict"]:
            said.append(f"{step}: {entry['verdict']} among all, {own['verdict']} alone")
        lists = (own["deltas"], [row for row in stage.deltas["deltas"] if row["step"] == step])
        values = [{key_of(row): row["delta"] for row in rows} for rows in lists]
        of_table = [row for row in table if row["step"] == str(step)]
        values.append({key_of(row): float(row["delta"]) for row in of_table})
        if not values[0] == values[1] == pytest.approx(values[2]):
            said.append(f"{step}: deltas differ between files")
    return said


def _of_rows(stage: Written) -> list[str]:
    """Flag, interval, p-value and Holm's correction of a row say one thing."""
    said = []
    for row in stage.deltas["deltas"]:
        name = f"{row['step']} {key_of(row)}"
        sign = 1 if row["higher_is_better"] else -1
        if row["low"] is not None and not row["low"] <= row["delta"] <= row["high"]:
            said.append(f"{name}: outside its interval")
        is_tested = row["p"] is not None and row["low"] is not None
        if is_tested and (row["low"] > 0 or row["high"] < 0) != (row["p"] < ALPHA):
            said.append(f"{name}: interval and p {row['p']}")
        if row["flag"] in ("better", "worse"):
            if (row["delta"] * sign > 0) != (row["flag"] == "better"):
                said.append(f"{name}: flag {row['flag']}")
            if row["p_holm"] is not None and row["p_holm"] > ALPHA:
                said.append(f"{name}: flag at p_holm {row['p_holm']}")
    return said


def _gain(stage: Written, step: int) -> float:
    """The gain by the headline: the first objective to improve, or the first."""
    rows = stage.verdicts[step]["objectives"]
    row = next((row for row in rows if row["want"] == "improve"), rows[0])
    higher = next(
        delta["higher_is_better"]
        for delta in stage.deltas["deltas"]
        if (delta["tier"], delta["metric"]) == (row["tier"], row["metric"])
    )
    return float(row["delta"]) * (1 if higher else -1)


def _of_recommendation(stage: Written) -> list[str]:
    advice, verdicts, said = stage.advice, stage.verdicts, []
    chosen, best = advice["step"], max(ORDER.index(v["verdict"]) for v in stage.verdicts.values())
    if advice["verdict"] != verdicts[chosen]["verdict"]:
        said.append(f"recommended as {advice['verdict']}, judged {verdicts[chosen]['verdict']}")
    if ORDER.index(advice["verdict"]) != best:
        said.append(f"{advice['verdict']} is recommended beside a checkpoint that is {ORDER[best]}")
    if advice["meets"] != (advice["verdict"] == "met"):
        said.append("`meets` and `verdict`")
    named = [
        chosen,
        *(e["step"] for e in advice["similar"]),
        *(e["step"] for e in advice["others"]),
    ]
    if sorted(named) != list(stage.steps):
        said.append(f"similar and others name {named}")
    for entry in advice["others"]:
        if entry["verdict"] != verdicts[entry["step"]]["verdict"]:
            said.append(f"{entry['step']}: {entry['verdict']} among the rejected")
    if advice["verdict"] != "not met":
        peers = [s for s in stage.steps if verdicts[s]["verdict"] == advice["verdict"]]
        if _gain(stage, chosen) < max(_gain(stage, step) for step in peers):
            said.append("a checkpoint of the same verdict has a better headline")
    return said


def _of_pairs(stage: Written) -> list[str]:
    """Who is called behind is significantly worse in a comparison of the two checkpoints."""
    advice, said = stage.advice, []
    folder = stage.plan.step_folder
    about = advice["headline"]
    for entry in (*advice["similar"], *advice["others"]):
        compared = compare_checkpoints(folder(entry["step"]), folder(advice["step"]))
        rows = {(row.tier, row.item, row.metric): row for row in compared.stages[0].deltas}
        item = {None: "overall", "hq": "web"}[about["group"]]  # a group of one item is that item
        row = rows[about["tier"], item, f"delta_{about['metric']}"]
        gain = row.delta if row.higher_is_better else -row.delta
        worse = row.p is not None and row.p < ALPHA and gain < 0
        if "significantly behind" in entry.get("why", "") and not worse:
            said.append(f"{entry['step']}: behind, but p {row.p} for {row.delta} in `compare`")
        if "delta" in entry and entry["delta"] != pytest.approx(row.delta, abs=1e-9):
            said.append(f"{entry['step']}: differs by {entry['delta']}, {row.delta} in `compare`")
    return said


@pytest.mark.parametrize("seed", range(12))
def test_no_two_places_contradict(tmp_path: Path, seed: int) -> None:
    assert contradictions(drawn(tmp_path, seed)) == []


@pytest.mark.long
@pytest.mark.parametrize("seed", range(12, 120))
def test_no_two_places_contradict_in_more_stages(tmp_path: Path, seed: int) -> None:
    assert contradictions(drawn(tmp_path, seed)) == []


def test_a_contradiction_would_be_seen(tmp_path: Path) -> None:
    stage = drawn(tmp_path, 1)
    path = stage.plan.results / "recommendation.json"
    content = read(path)
    content["verdict"] = next(one for one in ORDER if one != content["verdict"])
    path.write_text(json.dumps(content))
    assert contradictions(written(stage.plan, stage.steps))
    write_stage(stage.plan, stage.steps)
    assert contradictions(written(stage.plan, stage.steps)) == []
