"""All results of a stage, as far as they are there."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evaluation.bridge.results import FILES, Results, read_results, tiers_in
from evaluation.bridge.write import DELTAS, RECOMMENDATION, read_deltas, read_json
from evaluation.settings.plan import StagePlan


@dataclass(frozen=True, kw_only=True)
class StageResults:
    """Results by step, with what is missing named; parts that are not there are None or absent."""

    plan: StagePlan
    steps: dict[int, Results]
    bridge: Results | None
    deltas: dict[int, dict[str, Any]]
    recommendation: dict[str, Any] | None
    missing: tuple[str, ...] = field(default=())


def read_stage(plan: StagePlan, steps: Sequence[int]) -> StageResults:
    """Reads whatever of a stage's results is there.

    Raises:
        BridgeError: a file is there but damaged.
    """
    missing: list[str] = []
    found = {step: _read(plan.step_folder(step), plan, f"step {step}", missing) for step in steps}
    bridge, deltas, recommendation = None, {}, None
    if plan.stage.bridge is not None:
        bridge = _read(plan.bridge_folder, plan, "bridge", missing)
        for step in steps:
            path = plan.step_folder(step) / DELTAS
            if path.exists():
                deltas[step] = read_deltas(path)
            else:
                missing.append(f"step {step}: {DELTAS}")
        path = plan.results / RECOMMENDATION
        recommendation = read_json(path) if path.exists() else None
    return StageResults(
        plan=plan,
        steps={step: results for step, results in found.items() if results is not None},
        bridge=bridge,
        deltas=deltas,
        recommendation=recommendation,
        missing=tuple(missing),
    )


def _read(folder: Path, plan: StagePlan, name: str, missing: list[str]) -> Results | None:
    there = [tier for tier in tiers_in(folder) if tier in plan.tiers]
    missing += [f"{name}: {FILES[tier]}" for tier in plan.tiers if tier not in there]
    return read_results(folder, there) if there else None
