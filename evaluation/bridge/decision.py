"""The verdict of a stage: its best step's, corrected for the choice among all steps.

Each objective is judged at the alpha at which all steps' intervals hold simultaneously. Steps may fail
different objectives. So the intervals of each step's nearest objective, the one that it meets least
clearly, must also hold simultaneously at that alpha.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evaluation.bridge.choice import of_recipe, simultaneous_alpha
from evaluation.bridge.delta import Delta
from evaluation.bridge.means import decisive_deltas
from evaluation.bridge.verdicts import conjunction, needed_gain, objective_verdicts
from evaluation.results.objective_rows import ObjectiveRow, ObjectiveVerdict
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
    def worst_loss(self) -> ObjectiveRow | None:
        """The `keep` objective with the largest loss in units of its margin; None without any."""
        keeps = [row for row in self.objectives if row.want == "keep"]
        return max(keeps, key=loss_in_margins, default=None)

    @property
    def excess_loss(self) -> float:
        """The largest loss of a `keep` objective, in units of its margin; 0 without any."""
        return 0.0 if (row := self.worst_loss) is None else loss_in_margins(row)


def loss_in_margins(row: ObjectiveRow) -> float:
    """Return the loss by an objective to keep in units of its margin, or else of its metric's `worth`."""
    return -row.gain / (row.margin or row.definition.worth)


@dataclass(frozen=True, kw_only=True)
class Decision:
    """All steps of a stage; `alphas` are the objectives', `headline` the index of the one that ranks.

    `decisive` holds each step's uncorrected headline delta; `awaited` is the number of steps still to come.
    """

    steps: Sequence[JudgedStep]
    decisive: Sequence[Delta]
    alphas: Sequence[float]
    headline: int
    objective: Objective
    awaited: int = 0


def headline_of(objectives: Sequence[Objective | ObjectiveRow]) -> int:
    """Return the index of the objective that ranks steps: the first `improve` one, else the first."""
    return next((i for i, goal in enumerate(objectives) if goal.want == "improve"), 0)


def decide(
    stage: str,
    objectives: Sequence[Objective],
    deltas: Mapping[int, Sequence[Delta]],
    awaited: int = 0,
) -> Decision:
    """Judge all steps of a stage together, each corrected for the choice among all of them.

    Args:
        deltas: Deltas of each step against the bridge.
        awaited: Number of steps still to come, which share the alpha.

    Raises:
        BridgeError: Nothing of an objective was scored.
    """
    decisive = [
        {
            step: decisive_deltas(goal, rows, f"stages.{stage}.objective.{i}")[1]
            for step, rows in deltas.items()
        }
        for i, goal in enumerate(objectives)
    ]
    alphas = _alphas(objectives, decisive, awaited)
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
    headline = headline_of(objectives)
    return Decision(
        steps=judged,
        decisive=[*decisive[headline].values()],
        alphas=alphas,
        headline=headline,
        objective=objectives[headline],
        awaited=awaited,
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


def _alphas(
    objectives: Sequence[Objective], decisive: Sequence[Mapping[int, Delta]], awaited: int
) -> list[float]:
    alphas = [_alpha([*of_goal.values()], awaited) for of_goal in decisive]
    if len(objectives) < 2:
        return alphas
    nearest = []
    for of_step in zip(*(of_goal.values() for of_goal in decisive), strict=True):
        distances = [d for d in map(_distance, objectives, of_step) if d is not None]
        if len(distances) == len(objectives):
            nearest.append(of_step[distances.index(min(distances))])
    mixed = _alpha(nearest, awaited)
    return [min(alpha, mixed) for alpha in alphas]


def _alpha(deltas: Sequence[Delta], awaited: int) -> float:
    keys = [f"{delta.tier} {delta.metric}" for delta in deltas]
    return simultaneous_alpha([delta.estimate for delta in deltas], awaited=awaited, keys=keys)


def _distance(objective: Objective, delta: Delta) -> float | None:
    """Return how far the gain is above the needed one, in standard errors."""
    se = delta.estimate.se
    return (delta.gain - needed_gain(objective)) / se if se else None
