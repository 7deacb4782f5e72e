"""The verdict of a stage: that of its best step, judged as the best of all of them.

Each aim is judged at the level at which the intervals of all steps hold together. Steps may fall
short of different aims; so the level is also that of each step's nearest aim, the one that is least
clearly met, taken together over the steps.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from evaluation.bridge.delta import OVERALL, Delta, leading_deltas
from evaluation.bridge.simultaneous_intervals import (
    Leaves,
    Ranking,
    leaves,
    rank,
    simultaneous_level,
)
from evaluation.bridge.statistics import ALPHA
from evaluation.bridge.verdicts import (
    aimed_at,
    companion_delta,
    conjunction,
    judge_step,
    needed_gain,
)
from evaluation.results.deltas_file import AimRow, Answer
from evaluation.settings.candidates import Candidate
from evaluation.settings.objectives import Aim
from evaluation.settings.tiers import TIERS


@dataclass(frozen=True, kw_only=True)
class JudgedStep:
    """A step or merge with its verdicts as one of all, one for each aim of the objective, in order.

    `own_verdict` is what would hold if it had been the only one.
    """

    step: Candidate
    verdict: Answer
    aims: Sequence[AimRow]
    own_verdict: Answer | None = None

    def breaks_a_keep(self) -> bool:
        return any(aim.want == "keep" and aim.verdict == "not met" for aim in self.aims)

    def excess_loss(self) -> float:
        """Return the largest loss beyond its margin among the aims to keep."""
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


def needed_deltas(deltas: Sequence[Delta], objective: Sequence[Aim]) -> list[Delta]:
    """Return the deltas that a stage is judged by, without what would take much memory over all steps."""
    named = {f"delta_{aim.metric}" for aim in objective if aim.metric is not None}
    return [
        delta
        for delta in deltas
        if delta.item != OVERALL or TIERS[delta.tier].rates
        if delta.primary or delta.metric in {*leading_deltas(delta.tier), *named}
    ]


def decide(
    stage: str,
    objective: Sequence[Aim],
    deltas: Mapping[Candidate, Sequence[Delta]],
    awaited: int = 0,
) -> Decision:
    """Judge all steps of a stage together, and so many `awaited` ones that are to come.

    Raises:
        BridgeError: an aim is at what was not scored.
    """
    aimed = [
        [aimed_at(aim, own, f"stages.{stage}.objective.{i}")[1] for own in deltas.values()]
        for i, aim in enumerate(objective)
    ]
    alphas = _levels(objective, aimed, awaited)
    companion_alphas = [_companion_level(aim, list(deltas.values()), awaited) for aim in objective]
    judged = []
    for step, own in deltas.items():
        alone = [aim.verdict for aim in judge_step(objective, own, stage)]
        aims = judge_step(objective, own, stage, alphas, companion_alphas)
        verdict = conjunction([aim.verdict for aim in aims])
        assert verdict is not None
        judged.append(
            JudgedStep(step=step, verdict=verdict, aims=aims, own_verdict=conjunction(alone))
        )
    headline = next((i for i, aim in enumerate(objective) if aim.want == "improve"), 0)
    return Decision(
        steps=judged,
        aimed=aimed[headline],
        alphas=alphas,
        headline=headline,
        aim=objective[headline],
        awaited=awaited,
    )


def _column(delta: Delta) -> Leaves:
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


def _companion_level(aim: Aim, deltas: Sequence[Sequence[Delta]], awaited: int) -> float:
    """Return the level at which the secondary metric's intervals of all steps hold together."""
    found = [companion_delta(aim, own) for own in deltas]
    return _level([delta for delta in found if delta is not None], awaited)


def _level(deltas: Sequence[Delta], awaited: int) -> float:
    known = [delta for delta in deltas if delta.estimate.se]
    estimates = [delta.estimate for delta in known]
    return simultaneous_level(estimates, [_column(delta) for delta in known], awaited=awaited)


def _distance(aim: Aim, delta: Delta) -> float | None:
    """Return how clearly an aim is met, in standard errors."""
    se = delta.estimate.se
    return (delta.gain - needed_gain(aim)) / se if se else None


def _ranking(aim: Aim, deltas: Sequence[Delta]) -> Ranking | None:
    columns = [_column(delta) for delta in deltas]
    if any(column.keys() != columns[0].keys() for column in columns):
        return None
    gains, estimates = [delta.gain for delta in deltas], [delta.estimate for delta in deltas]
    counts_items = TIERS[aim.tier].kind == "credit" and not aim.decided_on.companion
    return rank(gains, estimates, columns, counts_items=counts_items)


def corrected_for(decision: Decision, *, is_open: bool) -> str:
    """Return what the verdict is corrected for; `is_open` if any number of steps may come."""
    count = len(decision.steps) + decision.awaited
    confidence = 100 * (1 - min(decision.alphas, default=ALPHA))
    text = (
        "One checkpoint was compared with the bridge, so its own 95 % intervals decide and "
        "nothing had to be corrected for a choice."
        if count == 1
        else f"The best of {count} checkpoints looks better than it is, so the verdict rests on intervals "
        f"that hold for all {count} at once ({confidence:.1f} % for each checkpoint), not on the 95 % "
        "intervals that each has of its own."
    )
    if decision.awaited and count > 1:
        text += f" {decision.awaited} of them are to come: the level is shared with them."
    return f"{text} {_OPEN}" if is_open else text


_OPEN = (
    "`steps` is no list, so nobody knows how many are to come: the verdict is right for one look, and "
    "wrong more often if the stage is judged again after each new checkpoint (docs/verdicts.md)."
)
