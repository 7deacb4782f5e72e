"""Verdicts on a step: whether it meets the objectives of its stage.

An objective is decided on the overall delta of its items (Tier4: on `all_checks_pass_rate`), signed so
that a gain is positive, with its 95 % interval [low, high]:

    improve by m    met: low > m           not met: high <= m      else undecided
    keep within m   met: low >= -m         not met: high < -m      else undecided

`keep` is a test of non-inferiority. A regression is an item that is significantly worse (for a `keep`: by
more than the margin). It is tested in the same family as the flags of the table of deltas (Holm's
correction over all slices, tasks and rates of the step, at ALPHA for any number of steps: a smaller level
would weaken the guard with every checkpoint); the items of an objective on a secondary metric are a family
of their own. A regression makes a `keep` not met, since a mean may hide it. For an `improve` it is only
listed.

A step's own verdict is the conjunction of its objectives. As each must be met, several objectives need
no correction: wrongly claiming all of them is no likelier than wrongly claiming one.
"""

from collections.abc import Sequence

from evaluation.bridge.choice import holm
from evaluation.bridge.delta import Delta, change_columns
from evaluation.bridge.estimate import ALPHA, Estimate, at_alpha, p_beyond
from evaluation.bridge.means import decisive_deltas
from evaluation.results.deltas_file import ObjectiveRow, ObjectiveVerdict
from evaluation.settings.objectives import Objective
from evaluation.settings.tiers import TIERS

_STRONG = 0.4
"""Skewness of an estimate beyond which more than the nominal share of intervals misses the truth."""


def verdict_on(objective: Objective, estimate: Estimate, sign: int = 1) -> ObjectiveVerdict:
    """Return the verdict on an objective by the interval of the gain; without interval, it is `undecided`.

    Args:
        sign: -1 where less is better.
    """
    if estimate.low is None or estimate.high is None:
        return "undecided"
    low, high = sorted((sign * estimate.low, sign * estimate.high))
    if objective.want == "improve":
        is_met, is_missed = low > objective.margin, high <= objective.margin
    else:
        is_met, is_missed = low >= -objective.margin, high < -objective.margin
    return "met" if is_met else "not met" if is_missed else "undecided"


def conjunction(verdicts: Sequence[ObjectiveVerdict]) -> ObjectiveVerdict | None:
    """Return a step's verdict: `not met` if one is, `met` if all are, else `undecided`; None without any."""
    if not verdicts:
        return None
    if "not met" in verdicts:
        return "not met"
    return "met" if set(verdicts) == {"met"} else "undecided"


def objective_verdicts(
    objectives: Sequence[Objective],
    deltas: Sequence[Delta],
    stage: str,
    alphas: Sequence[float] | None = None,
) -> list[ObjectiveRow]:
    """Return a verdict for each objective, at its alpha if given; raise BridgeError if nothing was scored."""
    rows = []
    for number, objective in enumerate(objectives):
        key = f"stages.{stage}.objective.{number}"
        parts, headline = decisive_deltas(objective, deltas, key)
        estimate = at_alpha(headline.estimate, alphas[number] if alphas else ALPHA)
        regressions = _regressions(objective, parts, deltas)
        verdict = verdict_on(objective, estimate, headline.sign)
        if regressions and objective.want == "keep":
            verdict = "not met"
        row = ObjectiveRow(
            tier=objective.tier,
            want=objective.want,
            group=objective.group,
            margin=objective.margin,
            verdict=verdict,
            metric=headline.metric,
            items=tuple(dict.fromkeys(part.item for part in parts)),
            mde=estimate.mde,
            regressions=regressions,
            why=_why(objective, estimate, verdict, regressions),
            **change_columns((headline.value, headline.bridge_value), estimate),
        )
        rows.append(row)
    return rows


def _regressions(
    objective: Objective, parts: Sequence[Delta], deltas: Sequence[Delta]
) -> tuple[str, ...]:
    """Return an objective's items that are significantly worse, for a `keep` by more than its margin."""
    is_secondary = any(part.is_secondary for part in parts)
    family = list(parts) if is_secondary else [delta for delta in deltas if delta.primary]
    own = {(part.tier, part.item, part.metric) for part in parts}
    is_own = [(test.tier, test.item, test.metric) in own for test in family]
    p_values = [test.estimate.p for test in family]
    for place, test in enumerate(family):
        if is_own[place] and objective.want == "keep":
            beyond = p_beyond(test.estimate, -objective.margin * test.sign, above=test.sign < 0)
            p_values[place] = None if beyond is None else min(1.0, 2 * beyond)
    worse = [
        test
        for test, is_part, p in zip(family, is_own, holm(p_values), strict=True)
        if is_part and p is not None and p < ALPHA and test.gain < 0
    ]
    rates = TIERS[objective.tier].rates
    return tuple(test.metric.removeprefix("delta_") if rates else test.item for test in worse)


def _why(
    objective: Objective, estimate: Estimate, verdict: ObjectiveVerdict, regressions: Sequence[str]
) -> str:
    metric = objective.decided_on
    if estimate.low is None or estimate.high is None:
        return f"{metric.words} {metric.change(estimate.value)}; {estimate.note}"
    change = metric.change(estimate.value, estimate.low, estimate.high)
    text = f"{metric.words} {change}, margin {metric.size(objective.margin)}"
    if regressions:
        beyond = " by more than the margin" if objective.want == "keep" else ""
        text += f"; significantly worse{beyond}: {', '.join(regressions)}"
    if verdict == "undecided" and estimate.mde is not None:
        text += f"; could only detect changes of {metric.change(estimate.mde, sign='')} or more"
    if abs(estimate.skew) > _STRONG:
        text += "; few and skewed differences, so its error rate exceeds the nominal one"
    return text
