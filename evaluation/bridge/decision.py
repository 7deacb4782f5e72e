"""The verdict of a stage: its best step's, corrected for the choice among all steps.

Each objective is judged at the alpha at which all steps' intervals hold simultaneously.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evaluation.bridge.choice import of_recipe, simultaneous_alpha
from evaluation.bridge.delta import Delta
from evaluation.bridge.means import decisive_deltas
from evaluation.bridge.verdicts import conjunction, objective_verdicts
from evaluation.results.deltas_file import ObjectiveRow, ObjectiveVerdict
from evaluation.settings.objectives import Objective


@dataclass(frozen=True, kw_only=True)
class JudgedStep:
    """A step with a verdict for each objective in order, corrected for the choice among all steps.

    `own_verdict` is the verdict that it would have as the only step.
    """

    step: int
    verdict: ObjectiveVerdict
    objectives: Sequence[ObjectiveRow]
    own_verdict: ObjectiveVerdict | None = None

    @property
    def breaks_a_keep(self) -> bool:
        """Whether a `keep` objective is not met; an undecided one does not count."""
        return any(row.want == "keep" and row.verdict == "not met" for row in self.objectives)

    @property
    def worst_loss(self) -> float:
        """The largest loss of a `keep`, in units of its margin or its metric's `worth`."""
        keeps = [row for row in self.objectives if row.want == "keep"]
        return max((-row.gain / (row.margin or row.definition.worth) for row in keeps), default=0.0)


@dataclass(frozen=True, kw_only=True)
class Decision:
    """All steps of a stage; `alphas` are the objectives', `headline` the index of the one that ranks.

    `decisive` holds each step's uncorrected headline delta.
    """

    steps: Sequence[JudgedStep]
    decisive: Sequence[Delta]
    alphas: Sequence[float]
    headline: int


def decide(
    stage: str,
    objectives: Sequence[Objective],
    deltas: Mapping[int, Sequence[Delta]],
    awaited: int = 0,
) -> Decision:
    """Judge all steps together, corrected for the choice among all and those awaited; raise BridgeError."""
    decisive = [
        {
            step: decisive_deltas(goal, rows, f"stages.{stage}.objective.{i}")[1]
            for step, rows in deltas.items()
        }
        for i, goal in enumerate(objectives)
    ]
    alphas = [
        simultaneous_alpha([delta.estimate for delta in of_goal.values()], awaited=awaited)
        for of_goal in decisive
    ]
    judged = []
    for step, changes in deltas.items():
        alone = [row.verdict for row in objective_verdicts(objectives, changes, stage)]
        rows = [
            _with_recipe(row, of_goal, step)
            for row, of_goal in zip(
                objective_verdicts(objectives, changes, stage, alphas), decisive, strict=True
            )
        ]
        verdict = conjunction([row.verdict for row in rows])
        assert verdict is not None
        judged.append(
            JudgedStep(step=step, verdict=verdict, objectives=rows, own_verdict=conjunction(alone))
        )
    headline = next((i for i, goal in enumerate(objectives) if goal.want == "improve"), 0)
    return Decision(
        steps=judged,
        decisive=[*decisive[headline].values()],
        alphas=alphas,
        headline=headline,
    )


def _with_recipe(row: ObjectiveRow, of_goal: Mapping[int, Delta], step: int) -> ObjectiveRow:
    """Return a verdict with the interval of the recipe, which reaches as far as the one that decides."""
    values = [of_goal[number].estimate.value for number in sorted(of_goal)]
    recipe = of_recipe(of_goal[step].estimate, values)
    if recipe is None:
        return row
    low = recipe.low if row.low is None else min(recipe.low, row.low)
    high = recipe.high if row.high is None else max(recipe.high, row.high)
    update = {"recipe_noise": recipe.noise, "recipe_low": low, "recipe_high": high}
    return row.model_copy(update=update)
