"""The verdict of a stage: its best step's, corrected for the choice among all steps.

Each objective is judged at the alpha at which all steps' intervals hold simultaneously. Steps may fail
different objectives. So the intervals of each step's nearest objective, the one that it meets least
clearly, must also hold simultaneously at that alpha.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from evaluation.bridge.delta import Delta
from evaluation.bridge.means import decisive_deltas
from evaluation.bridge.ranking import Ranking, rank
from evaluation.bridge.recipes import RecipeInterval, of_recipe
from evaluation.bridge.simultaneous_intervals import Leaves, leaves, simultaneous_alpha
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

    def ranking(self, chosen: int | None = None) -> Ranking | None:
        """Compare steps with the chosen one, or all; None where their items differ, or for one step."""
        columns = [_column(delta) for delta in self.decisive]
        if any(column.keys() != columns[0].keys() for column in columns):
            return None
        estimates = [delta.estimate for delta in self.decisive]
        first = self.decisive[0]
        return rank(estimates, columns, first.item, first.sign, chosen)


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
        deltas: Deltas of each step against the bridge, of `needed_deltas` at least.
        awaited: Number of steps still to come, which share the alpha.

    Raises:
        BridgeError: Nothing of an objective was scored.
    """
    decisive = [
        [
            decisive_deltas(goal, rows, f"stages.{stage}.objective.{i}")[1]
            for rows in deltas.values()
        ]
        for i, goal in enumerate(objectives)
    ]
    alphas = _alphas(objectives, decisive, awaited)
    judged = []
    for step, changes in deltas.items():
        alone = [row.verdict for row in objective_verdicts(objectives, changes, stage)]
        rows = objective_verdicts(objectives, changes, stage, alphas)
        verdict = conjunction([row.verdict for row in rows])
        assert verdict is not None
        judged.append(
            JudgedStep(step=step, verdict=verdict, objectives=rows, own_verdict=conjunction(alone))
        )
    judged = _with_recipes(judged, decisive)
    headline = headline_of(objectives)
    return Decision(
        steps=judged,
        decisive=decisive[headline],
        alphas=alphas,
        headline=headline,
        objective=objectives[headline],
        awaited=awaited,
    )


def _with_recipes(
    judged: Sequence[JudgedStep], decisive: Sequence[Sequence[Delta]]
) -> list[JudgedStep]:
    """Return steps whose objectives also have the interval with the noise of checkpoints."""
    places = sorted(range(len(judged)), key=lambda place: judged[place].step)
    found = []
    for number, step in enumerate(judged):
        rows = []
        for row, of_all in zip(step.objectives, decisive, strict=True):
            values = [of_all[place].estimate.value for place in places]
            recipe = of_recipe(of_all[number].estimate, values)
            added = {} if recipe is None else _recipe_columns(recipe, row)
            rows.append(row.model_copy(update=added))
        found.append(replace(step, objectives=rows))
    return found


def _recipe_columns(recipe: RecipeInterval, row: ObjectiveRow) -> dict[str, float]:
    """Return the columns of a recipe, whose interval reaches as far as the one that decides."""
    low = recipe.low if row.low is None else min(recipe.low, row.low)
    high = recipe.high if row.high is None else max(recipe.high, row.high)
    return {"recipe_noise": recipe.noise, "recipe_low": low, "recipe_high": high}


def _column(delta: Delta) -> Leaves:
    found = leaves(delta.estimate, delta.item)
    return {f"{delta.tier} {delta.metric} {name}": leaf for name, leaf in found.items()}


def _alphas(
    objectives: Sequence[Objective], decisive: Sequence[Sequence[Delta]], awaited: int
) -> list[float]:
    alphas = [_alpha(of_objective, awaited) for of_objective in decisive]
    if len(objectives) < 2:
        return alphas
    nearest = []
    for of_step in zip(*decisive, strict=True):
        distances = list(map(_distance, objectives, of_step))
        if None not in distances:
            nearest.append(of_step[distances.index(min(d for d in distances if d is not None))])
    mixed = _alpha(nearest, awaited)
    return [min(alpha, mixed) for alpha in alphas]


def _alpha(deltas: Sequence[Delta], awaited: int) -> float:
    """Return the alpha at which the intervals of all steps hold simultaneously."""
    known = [delta for delta in deltas if delta.estimate.se]
    estimates = [delta.estimate for delta in known]
    return simultaneous_alpha(estimates, [_column(delta) for delta in known], awaited=awaited)


def _distance(objective: Objective, delta: Delta) -> float | None:
    """Return how far the gain is above the needed one, in standard errors."""
    se = delta.estimate.se
    return (delta.gain - needed_gain(objective)) / se if se else None
