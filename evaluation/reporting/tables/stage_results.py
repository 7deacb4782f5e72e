"""All results of a stage that exist and can be read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from evaluation.checkpoints.config_files import configuration_file
from evaluation.errors import ResultsError
from evaluation.reporting.tables.values import Value, position_values_of, values_of
from evaluation.results.deltas_file import DELTAS, StepDeltas, StepVerdict
from evaluation.results.read import Results, TierResults, read_tier
from evaluation.results.stage_files import RECOMMENDATION, Recommendation, chosen_among
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS, TierName

AnyFile = TypeVar("AnyFile")


@dataclass(frozen=True, kw_only=True)
class Scored:
    """A checkpoint's values, and its results without the per-item tables (they may be large)."""

    results: Results
    values: tuple[Value, ...]
    positions: tuple[Value, ...] = ()

    def tier(self, name: TierName) -> TierResults:
        """Read a tier with its per-item table anew; raise ResultsError."""
        return read_tier(self.results.folder, name)


@dataclass(frozen=True, kw_only=True)
class StageResults:
    """Results by step; parts that do not exist, or cannot be read, are None or absent.

    `missing` names files that do not exist, `damaged` has a sentence for each that cannot be used.
    `deleted` holds steps whose checkpoint was deleted since it was scored.
    """

    plan: StagePlan
    requested: tuple[int, ...]
    steps: dict[int, Scored]
    bridge: Scored | None
    deltas: dict[int, StepDeltas]
    recommendation: Recommendation | None
    verdicts: Mapping[int, StepVerdict] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    damaged: tuple[str, ...] = ()
    deleted: tuple[int, ...] = ()

    @property
    def chosen(self) -> int | None:
        """The recommended step, or the last one."""
        return chosen_among(self.steps, self.recommendation)

    def judged(self, step: int) -> StepVerdict:
        """Return the verdict on a compared step: the stage's, corrected for the choice, or else its own."""
        return self.verdicts.get(step, self.deltas[step])

    @property
    def verdict(self) -> str | None:
        """The verdict on the recommended step."""
        return self.recommendation.verdict if self.recommendation else None

    @property
    def last(self) -> Scored | None:
        """Results of the last step."""
        return self.steps[max(self.steps)] if self.steps else None


class _Reader:
    """Reads files one by one, and collects what is missing or damaged."""

    def __init__(self) -> None:
        self.missing: list[str] = []
        self.damaged: list[str] = []

    def read(self, path: Path, name: str, read: Callable[[Path], AnyFile]) -> AnyFile | None:
        if not path.exists():
            self.missing.append(f"{name}: {path.name}")
            return None
        try:
            return read(path)
        except ResultsError as error:
            self.damaged.append(f"{name}: {error}")
            return None

    def checkpoint(self, folder: Path, plan: StagePlan, name: str) -> Scored | None:
        tiers = {}
        for tier in plan.tiers:
            path = folder / TIERS[tier].summary_file
            found = self.read(path, name, _tier_reader(tier))
            if found is not None:
                tiers[tier] = found
        if not tiers:
            return None
        whole = Results(folder=folder, tiers=tiers)
        values, positions = tuple(values_of(whole)), tuple(position_values_of(whole))
        light = {tier: replace(found, items={}, overall=None) for tier, found in tiers.items()}
        return Scored(
            results=Results(folder=folder, tiers=light), values=values, positions=positions
        )


def read_stage(plan: StagePlan, steps: Sequence[int]) -> StageResults:
    """Read all results of a stage that exist and can be read; name what is missing or damaged."""
    reader = _Reader()
    checkpoints = {
        step: reader.checkpoint(plan.step_folder(step), plan, f"step {step}") for step in steps
    }
    scored = {
        step: checkpoint for step, checkpoint in checkpoints.items() if checkpoint is not None
    }
    bridge, deltas, recommendation, verdicts = None, {}, None, {}
    if plan.stage.bridge is not None:
        bridge = reader.checkpoint(plan.bridge_folder, plan, "bridge")
        for step in steps:
            path = plan.step_folder(step) / DELTAS
            content = reader.read(path, f"step {step}", StepDeltas.read)
            if content is not None:
                deltas[step] = content
        path = plan.results / RECOMMENDATION
        if path.exists():
            recommendation = reader.read(path, plan.name, Recommendation.read)
        judged = recommendation.verdicts if recommendation else ()
        verdicts = {verdict.step: verdict for verdict in judged}
    return StageResults(
        plan=plan,
        requested=tuple(steps),
        steps=scored,
        bridge=bridge,
        deltas=deltas,
        recommendation=recommendation,
        verdicts=verdicts,
        missing=tuple(reader.missing),
        damaged=tuple(reader.damaged),
        deleted=tuple(step for step in scored if configuration_file(plan.checkpoint(step)) is None),
    )


def _tier_reader(tier: TierName) -> Callable[[Path], TierResults]:
    return lambda path: read_tier(path.parent, tier)
