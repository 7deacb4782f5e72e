"""The verdict of a stage: that of its best step, judged as the best of all of them.

Each aim is judged at the level at which the intervals of all steps hold together. Steps may fall
short of different aims; so the level is also that of each step's nearest aim, the one that is least
clearly met, taken together over the steps.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from evaluation.bridge.aims import aimed_at
from evaluation.bridge.companions import companion_delta
from evaluation.bridge.deltas import OVERALL, Delta, headline_delta
from evaluation.bridge.simultaneous import Ranking, leaves, rank, simultaneous_level
from evaluation.bridge.statistics import ALPHA, Estimate
from evaluation.bridge.verdicts import (
    AimVerdict,
    Answer,
    conjunction,
    judge_step,
    needed_gain,
)
from evaluation.metrics.spread import Spread
from evaluation.settings.config import Aim
from evaluation.settings.tiers import TIERS, TierName

Column = Mapping[str, tuple[float, Spread | None]]


@dataclass(frozen=True, kw_only=True)
class JudgedStep:
    """A step with its verdicts as one of all steps, one for each aim of the objective, in order.

    `own_verdict` is what would hold if it had been the only one.
    """

    step: int
    verdict: Answer
    aims: Sequence[AimVerdict]
    own_verdict: Answer | None = None

    def breaks_a_keep(self) -> bool:
        return any(aim.want == "keep" and aim.verdict == "not met" for aim in self.aims)

    def excess_loss(self) -> float:
        """Largest loss beyond its margin among the aims to keep."""
        keeps = [aim for aim in self.aims if aim.want == "keep"]
        return max((-aim.gain - aim.margin for aim in keeps), default=0.0)


@dataclass(frozen=True, kw_only=True)
class Decision:
    """All steps of a stage; `alphas` are the levels of the aims, `headline` is the aim that ranks.

    `aimed` holds each step's headline as it is without the others; so many more steps are `awaited`.
    """

    steps: Sequence[JudgedStep]
    aimed: Sequence[Delta]
    alphas: Sequence[float]
    headline: int
    aim: Aim
    awaited: int = 0

    @cached_property
    def ranking(self) -> Ranking | None:
        """Steps against each other by the headline; takes far longer than the verdicts."""
        return _ranking(self.aim, self.aimed)


def lean(deltas: Sequence[Delta], objective: Sequence[Aim] = ()) -> list[Delta]:
    """The deltas that a stage is judged by, without what would take much memory over all steps."""
    named = {f"delta_{aim.metric}" for aim in objective if aim.metric is not None}
    return [
        delta
        for delta in deltas
        if delta.item != OVERALL or TIERS[delta.tier].rates
        if delta.primary or delta.metric in {*_spoken_of(delta.tier), *named}
    ]


def _spoken_of(tier: TierName) -> tuple[str, ...]:
    """The headline, and the companion that speaks where it is undecided."""
    return (headline_delta(tier), *(f"delta_{one.name}" for one in TIERS[tier].companions[:1]))


def headline_aim(objective: Sequence[Aim]) -> int:
    """Index of the aim that steps are ranked by."""
    return next((i for i, aim in enumerate(objective) if aim.want == "improve"), 0)


def decide(
    stage: str,
    objective: Sequence[Aim],
    deltas: Mapping[int, Sequence[Delta]],
    awaited: int = 0,
) -> Decision:
    """Judges all steps of a stage together, as some of those and so many that are to come.

    Raises:
        BridgeError: an aim is at what was not scored.
    """
    aimed = [
        [aimed_at(aim, own, f"stages.{stage}.objective.{i}")[1] for own in deltas.values()]
        for i, aim in enumerate(objective)
    ]
    alphas = _levels(objective, aimed, awaited)
    beside = [_level_beside(aim, list(deltas.values()), awaited) for aim in objective]
    judged = []
    for step, own in deltas.items():
        alone = [aim.verdict for aim in judge_step(objective, own, stage)]
        aims = judge_step(objective, own, stage, alphas, beside)
        verdict = conjunction([aim.verdict for aim in aims])
        assert verdict is not None
        judged.append(
            JudgedStep(step=step, verdict=verdict, aims=aims, own_verdict=conjunction(alone))
        )
    headline = headline_aim(objective)
    return Decision(
        steps=judged,
        aimed=aimed[headline],
        alphas=alphas,
        headline=headline,
        aim=objective[headline],
        awaited=awaited,
    )


def _column(delta: Delta) -> Column:
    found = leaves(delta.estimate, delta.item)
    return {f"{delta.tier} {delta.metric} {name}": leaf for name, leaf in found.items()}


def _levels(
    objective: Sequence[Aim], aimed: Sequence[Sequence[Delta]], awaited: int
) -> list[float]:
    own = [_level(known, awaited) for known in aimed]
    if len(objective) < 2:
        return own
    nearest = []
    for of_step in zip(*aimed, strict=True):
        distances = [_distance(aim, delta) for aim, delta in zip(objective, of_step, strict=True)]
        if None not in distances:
            nearest.append(of_step[distances.index(min(d for d in distances if d is not None))])
    mixed = _level(nearest, awaited)
    return [min(level, mixed) for level in own]


def _level_beside(aim: Aim, deltas: Sequence[Sequence[Delta]], awaited: int) -> float:
    """The level at which the companion's intervals of all steps hold together."""
    found = [companion_delta(aim, own) for own in deltas]
    return _level([delta for delta in found if delta is not None], awaited)


def _level(deltas: Sequence[Delta], awaited: int) -> float:
    known = [delta for delta in deltas if delta.estimate.se]
    estimates, columns = [delta.estimate for delta in known], [_column(d) for d in known]
    return simultaneous_level(estimates, columns, awaited=awaited)


def _distance(aim: Aim, delta: Delta) -> float | None:
    """How clearly an aim is met, in standard errors."""
    estimate: Estimate = delta.estimate
    if not estimate.se:
        return None
    return (delta.sign * estimate.value - needed_gain(aim)) / estimate.se


def _ranking(aim: Aim, deltas: Sequence[Delta]) -> Ranking | None:
    columns = [_column(delta) for delta in deltas]
    if any(column.keys() != columns[0].keys() for column in columns):
        return None
    gains = [delta.sign * delta.estimate.value for delta in deltas]
    estimates = [delta.estimate for delta in deltas]
    counts_items = TIERS[aim.tier].kind == "credit" and not aim.decided_on.companion
    return rank(gains, estimates, columns, counts_items=counts_items)


def corrected_for(decision: Decision, *, is_open: bool) -> str:
    """In a few sentences, what the verdict is corrected for; `is_open` if any number of steps may come."""
    count = len(decision.steps) + decision.awaited
    if count == 1:
        said = (
            "One checkpoint was compared with the bridge, so its own 95 % intervals decide and "
            "nothing had to be corrected for a choice."
        )
        return f"{said} {_OPEN}" if is_open else said
    confidence = 100 * (1 - min(decision.alphas, default=ALPHA))
    said = (
        f"The best of {count} checkpoints looks better than it is, so the verdict rests on intervals "
        f"that hold for all {count} at once ({confidence:.1f} % for each checkpoint), not on the 95 % "
        "intervals that each has of its own."
    )
    if decision.awaited:
        said += f" {decision.awaited} of them are to come: the level is shared with them."
    return f"{said} {_OPEN}" if is_open else said


_OPEN = (
    "`steps` is no list, so nobody knows how many are to come: the verdict is right for one look, and "
    "wrong more often if the stage is judged again after each new checkpoint (docs/verdicts.md)."
)
