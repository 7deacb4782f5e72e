"""All results of a stage, as far as they are there."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from evaluation.bridge.results import Results, read_results, tiers_in
from evaluation.bridge.write import DELTAS, RECOMMENDATION, read_deltas, read_json
from evaluation.reporting.tables.values import Value, values_of
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS


@dataclass(frozen=True, kw_only=True)
class Scored:
    """A checkpoint's values, and its results without the per-item tables (they may be large)."""

    results: Results
    values: tuple[Value, ...]

    def tables(self) -> Results:
        """The results with their per-item tables, read again."""
        return read_results(self.results.folder, self.results.headers)


@dataclass(frozen=True, kw_only=True)
class StageResults:
    """Results by step, with what is missing named; parts that are not there are None or absent."""

    plan: StagePlan
    asked: tuple[int, ...]
    steps: dict[int, Scored]
    bridge: Scored | None
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
        asked=tuple(steps),
        steps={step: scored for step, scored in found.items() if scored is not None},
        bridge=bridge,
        deltas=deltas,
        recommendation=recommendation,
        missing=tuple(missing),
    )


def _read(folder: Path, plan: StagePlan, name: str, missing: list[str]) -> Scored | None:
    there = [tier for tier in tiers_in(folder) if tier in plan.tiers]
    missing += [f"{name}: {TIERS[tier].summary_file}" for tier in plan.tiers if tier not in there]
    if not there:
        return None
    results = read_results(folder, there)
    light = replace(
        results,
        slices={key: replace(one, blocks=None) for key, one in results.slices.items()},
        tasks={key: replace(one, candidates=None) for key, one in results.tasks.items()},
    )
    return Scored(results=light, values=tuple(values_of(results)))
