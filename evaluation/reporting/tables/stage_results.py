"""The values of a stage's checkpoints, as far as their results exist and can be read."""

from collections.abc import Sequence
from dataclasses import dataclass

from evaluation.errors import ResultsError
from evaluation.reporting.tables.values import Value, position_values_of, values_of
from evaluation.results.read import Results, TierResults, read_tier
from evaluation.results.tier_files import TierFile, tiers_in
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TierName


@dataclass(frozen=True, kw_only=True)
class Scored:
    """A checkpoint's values; its units, which may be many, are read again where they are needed."""

    step: int | None
    header: TierFile
    tiers: tuple[TierName, ...]
    values: tuple[Value, ...]
    positions: tuple[Value, ...] = ()


@dataclass(frozen=True, kw_only=True)
class StageResults:
    """A stage's values by step; `damaged` has a sentence for each file that cannot be used."""

    plan: StagePlan
    steps: dict[int, Scored]
    bridge: Scored | None
    damaged: tuple[str, ...] = ()


def read_stage(plan: StagePlan, steps: Sequence[int]) -> StageResults:
    """Read all results of a stage that exist and can be read."""
    damaged: list[str] = []
    sides = {step: _read(plan, step, damaged) for step in steps}
    bridge = None if plan.stage.bridge is None else _read(plan, None, damaged)
    scored = {step: side for step, side in sides.items() if side is not None}
    return StageResults(plan=plan, steps=scored, bridge=bridge, damaged=tuple(damaged))


def _read(plan: StagePlan, step: int | None, damaged: list[str]) -> Scored | None:
    folder = plan.bridge_folder if step is None else plan.step_folder(step)
    tiers: dict[TierName, TierResults] = {}
    for name in plan.tiers:
        if name in tiers_in(folder):
            try:
                tiers[name] = read_tier(folder, name)
            except ResultsError as error:
                damaged.append(f"{plan.label(step)}: {error}")
    if not tiers:
        return None
    results = Results(folder=folder, tiers=tiers)
    return Scored(
        step=step,
        header=results.header,
        tiers=tuple(tiers),
        values=tuple(values_of(results)),
        positions=tuple(position_values_of(results)),
    )
