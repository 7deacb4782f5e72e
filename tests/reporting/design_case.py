"""The case of pages: four stages and an ablation, thirty checkpoints, twenty-five tasks."""

from pathlib import Path
from typing import Any

import yaml

from evaluation.bridge.write import write_deltas, write_stage
from evaluation.reporting.pages.front_page import write_front_page
from evaluation.settings.config import validate_config
from evaluation.settings.plan import StagePlan
from evaluation.settings.planning import plan_stages
from tests.bridge.folders import write_side
from tests.reporting.pages import write_report

CHECKPOINTS, TASKS, SLICES = 30, 25, 6
SUITE: dict[str, Any] = {
    "slices": {
        f"text{i}": {"dataset": "some/text", **({"group": "hq"} if i < 3 else {})}
        for i in range(SLICES)
    },
    "tasks": {
        f"task{i:02}": {"dataset": "some/quiz", "choices": "c", "gold": "g", "context": "{{ q }}"}
        for i in range(TASKS)
    },
    "probes": {
        f"p{i}": {
            "category": "lists" if i % 2 else "concise",
            "messages": [{"role": "user", "content": "Say it."}],
            "checks": [{"check": "complies"}],
        }
        for i in range(2)
    },
}
OBJECTIVE = [
    {"tier": "tier3", "want": "improve", "margin": 0.0},
    {"tier": "tier2", "group": "hq", "want": "keep", "margin": 0.02},
]
STAGES = {"web": None, "mix": "web", "mix_slow": "web", "reason": "mix", "sft": "reason"}
"""Each stage, and the one that it was trained from; `mix_slow` is an ablation of `mix`."""


def steps_of(stage: str, checkpoints: int = CHECKPOINTS) -> tuple[int, ...]:
    """The steps of a stage: `mix` has all checkpoints, the others a few."""
    return tuple(range(500, 500 * (checkpoints if stage == "mix" else 4) + 1, 500))


def design_plans(root: Path, checkpoints: int = CHECKPOINTS) -> dict[str, StagePlan]:
    """The plans of the stages."""
    (root / "suites").mkdir(parents=True, exist_ok=True)
    (root / "suites/all.yaml").write_text(yaml.safe_dump(SUITE, sort_keys=False))
    stages = {}
    for name, before in STAGES.items():
        stages[name] = {
            "checkpoints": str(root / "ckpts" / name),
            "steps": list(steps_of(name, checkpoints)),
            "suites": ["all"],
        }
        if before is not None:
            bridge = {"stage": before, "step": steps_of(before, checkpoints)[-1]}
            stages[name] |= {"bridge": bridge, "objective": OBJECTIVE}
    content = {
        "results": str(root / "results"),
        "cache": str(root / "cache"),
        "suites": str(root / "suites"),
        "tokenizer": {"name": "some/tokenizer"},
        "sequence_length": 64,
        "stages": stages,
    }
    return plan_stages(validate_config(content, "test"))


def write_design_case(root: Path, checkpoints: int = CHECKPOINTS) -> dict[str, StagePlan]:
    """Results and pages of all stages; accuracy rises, then falls, within each."""
    plans = design_plans(root, checkpoints)
    depth: dict[str | None, int] = {None: -1}
    for name, before in STAGES.items():
        depth[name] = number = depth[before] + 1
        plan, steps = plans[name], steps_of(name, checkpoints)
        sides = {"items": 60, "blocks": 30, "prompts": 24}
        if before is not None:
            last = steps_of(before, checkpoints)[-1]
            folder = str(plans[before].checkpoint(last))
            bridge = {"stage": before, "step": last, "checkpoint": folder}
            write_side(plan.bridge_folder, plan, skill=number / 10, **bridge, **sides)
        for place, step in enumerate(steps):
            plan.checkpoint(step).mkdir(parents=True)
            (plan.checkpoint(step) / "config.json").write_text("{}")
            share = place / len(steps)
            level = {
                "skill": number / 10 + share * (1.2 - share),
                "nats": 3 - number / 20 - share / 20,
            }
            where = {"step": step, "checkpoint": str(plan.checkpoint(step))}
            write_side(plan.step_folder(step), plan, seed=1 + place, **where, **level, **sides)
            if plan.stage.bridge is not None:
                write_deltas(plan, step)
        if plan.stage.bridge is not None:
            write_stage(plan, steps)
        write_report(plan, steps)
    write_front_page(plans)
    return plans
