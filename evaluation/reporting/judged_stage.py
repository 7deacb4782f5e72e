"""A stage's table and judgement as pages and the terminal read them, with what failed or is missing."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import pandas as pd

from evaluation.checkpoints.subjects import steps_so_far
from evaluation.errors import ResultsError, first_few
from evaluation.results.deltas_file import DELTAS, ObjectiveRow, StepDeltas
from evaluation.results.files import StageFile
from evaluation.results.stage_files import QUALITY, RECOMMENDATION, Recommendation, TaskQuality
from evaluation.results.table import SUMMARY, TABLE_COLUMNS, read_rows
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS

AnyFile = TypeVar("AnyFile", bound=StageFile)


@dataclass(frozen=True, kw_only=True)
class JudgedStage:
    """A stage's table and judgement, as far as they exist; `problems` name what failed or is missing.

    `advised_bridge` is the checkpoint that the bridge's own stage recommends, such as `stage1/2000`.
    """

    plan: StagePlan
    frame: pd.DataFrame
    recommendation: Recommendation | None
    deltas: Mapping[int, StepDeltas]
    quality: TaskQuality | None = None
    problems: tuple[str, ...] = ()
    advised_bridge: str | None = None

    @cached_property
    def steps(self) -> list[int]:
        """Steps that have results."""
        steps = self.frame.loc[self.frame["role"] != "bridge", "step"]
        return [int(step) for step in dict.fromkeys(steps.dropna())]

    @cached_property
    def chosen(self) -> int | None:
        """The recommended step, or else the last one that was compared, or scored."""
        advised = self.recommendation.step if self.recommendation else None
        return advised if advised in self.steps else max(self.deltas or self.steps, default=None)

    @cached_property
    def objectives(self) -> tuple[ObjectiveRow, ...]:
        """The verdicts on the chosen step: the stage's, corrected for the choice among steps, or its own."""
        stage = self.recommendation.verdicts if self.recommendation else ()
        verdicts = [*stage, *self.deltas.values()]
        return next((judged.objectives for judged in verdicts if judged.step == self.chosen), ())

    @property
    def rows(self) -> pd.DataFrame:
        """The table's rows of the chosen step."""
        return self.frame[(self.frame["step"] == self.chosen) & (self.frame["role"] != "bridge")]

    @cached_property
    def positions(self) -> pd.DataFrame:
        """Losses by position in the context, of the chosen step and of the bridge."""
        sides = (self.frame["role"] == "bridge") | (self.frame["step"] == self.chosen)
        columns = ["tier", "item", "metric", "checkpoint", "position", "value"]
        return self.frame.loc[sides & self.frame["position"].notna(), columns]

    @property
    def against(self) -> str:
        """The bridge's name."""
        names = self.frame["against"].dropna()
        return str(names.iloc[0]) if len(names) else "the bridge"

    def called(self, step: int) -> str:
        """Return a step's number, with its configured name."""
        return self.plan.label(step).removeprefix("step ")


def read_stage(
    plan: StagePlan, plans: Mapping[str, StagePlan], failed: Sequence[str] = ()
) -> JudgedStage:
    """Read what exists of a stage; a file that cannot be used is one more problem.

    Args:
        failed: Sentences on jobs that failed, and on checkpoints that cannot be compared.
    """
    problems = [*failed]

    def read(path: Path, kind: type[AnyFile]) -> AnyFile | None:
        try:
            return kind.read(path) if path.exists() else None
        except ResultsError as error:
            problems.append(str(error))
            return None

    frame = _table(plan, problems)
    problems += _missing(plan, frame)
    steps = dict.fromkeys(frame.loc[frame["role"] == "step", "step"].dropna().map(int))
    bridge = plan.stage.bridge
    advice, deltas = None, {}
    if bridge is not None:
        advice = read(plan.results / RECOMMENDATION, Recommendation)
        found = {step: read(plan.step_folder(step) / DELTAS, StepDeltas) for step in steps}
        deltas = {step: content for step, content in found.items() if content is not None}
    earlier = plans.get(bridge.stage or "") if bridge else None
    theirs = read(earlier.results / RECOMMENDATION, Recommendation) if earlier else None
    is_advised = theirs is not None and theirs.verdict == "met"
    return JudgedStage(
        plan=plan,
        frame=frame,
        recommendation=advice,
        deltas=deltas,
        quality=read(plan.results / QUALITY, TaskQuality),
        problems=tuple(dict.fromkeys(problems)),
        advised_bridge=f"{theirs.stage}/{theirs.step}" if theirs and is_advised else None,
    )


def _table(plan: StagePlan, problems: list[str]) -> pd.DataFrame:
    """Read the stage's table, with the rows about positions; empty where there is none."""
    path, rows = plan.results / SUMMARY, []
    try:
        if path.exists():
            rows = read_rows(path)
    except ResultsError as error:
        problems.append(str(error))
    return pd.DataFrame(rows, columns=[*TABLE_COLUMNS])


def _missing(plan: StagePlan, frame: pd.DataFrame) -> Iterator[str]:
    """Yield which results are not there, or cannot be used, with the checkpoints that lack them."""
    names = {plan.label(step): plan.step_folder(step) for step in steps_so_far(plan)}
    if plan.stage.bridge is not None:
        names["bridge"] = plan.bridge_folder
    known = set(zip(frame["checkpoint"], frame["tier"], strict=True))
    lacking: dict[str, list[str]] = {}
    for name, folder in names.items():
        for tier in plan.tiers:
            if (name, tier) not in known:
                file = TIERS[tier].summary_file
                state = "cannot be used" if (folder / file).exists() else "missing"
                lacking.setdefault(f"{file} {state}", []).append(name)
    for what, of in lacking.items():
        yield f"{what}: {first_few(of)}"
