"""Whether a step does what its stage is for.

An aim is decided on the overall delta of its items (Tier4: on `all_checks_pass_rate`), turned so
that a gain is positive, with its 95 % interval [low, high]:

    improve by m    met: low > m           not met: high <= m      else undecided
    keep within m   met: low >= -m         not met: high < -m      else undecided

`keep` is a test of non-inferiority. Where few items differ, low and high are held to the exact test
at the margin. A regression is an item that is significantly worse: at all for an `improve`, by more
than the margin for a `keep`. Its family of tests is that of the flags of the table of deltas (Holm's
correction over all slices, tasks and rates of the step); an aim that names a secondary metric has a
family of its own, its items. A regression makes a `keep` not met, since a mean may hide it; for an
`improve` it is listed, as gains elsewhere may be worth it.

A step's own verdict is the conjunction of its aims. Each must be met on its own, which needs no
further correction: claiming all of them wrongly is no likelier than claiming the likeliest one
wrongly. What choosing among several steps asks for beyond that comes in as `alpha`, see
`simultaneous_intervals`.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from evaluation.bridge.aims import aimed_at, companion_verdict, gain_interval
from evaluation.bridge.delta import Delta
from evaluation.bridge.simultaneous_intervals import at_level, p_beyond
from evaluation.bridge.statistics import ALPHA, Estimate, holm
from evaluation.results.deltas_file import AimRow, Answer
from evaluation.settings.aims import Aim
from evaluation.settings.tiers import TIERS, Metric


def judge_step(
    objective: Sequence[Aim],
    deltas: Sequence[Delta],
    stage: str,
    alphas: Sequence[float] | None = None,
    beside: Sequence[float] | None = None,
) -> list[AimRow]:
    """Return one verdict for each aim.

    `alphas` are the levels that the aims are judged at, if not at ALPHA; `beside` are those of their
    secondary metrics.

    Raises:
        BridgeError: an aim is at what was not scored.
    """
    plain = [ALPHA] * len(objective)
    levels = zip(alphas or plain, beside or plain, strict=True)
    return [
        judge_aim(aim, deltas, f"stages.{stage}.objective.{number}", *pair)
        for number, (aim, pair) in enumerate(zip(objective, levels, strict=True))
    ]


def conjunction(verdicts: Sequence[Answer]) -> Answer | None:
    """Return `not met` if one is not, `met` if all are; None if there is nothing to judge."""
    if not verdicts:
        return None
    if "not met" in verdicts:
        return "not met"
    return "met" if set(verdicts) == {"met"} else "undecided"


def judge_aim(
    aim: Aim, deltas: Sequence[Delta], key: str, alpha: float = ALPHA, beside: float = ALPHA
) -> AimRow:
    """Return the verdict on one aim; `key` is its place in the configuration."""
    parts, headline = aimed_at(aim, deltas, key)
    estimate = _held_to_margin(at_level(headline.estimate, alpha), aim, headline.sign, alpha)
    regressions = _regressions(aim, parts, deltas, alpha)
    answer = answer_of(aim, *gain_interval(headline.sign, estimate))
    if regressions and aim.want == "keep":
        answer = "not met"
    return AimRow(
        tier=aim.tier,
        want=aim.want,
        group=aim.group,
        margin=aim.margin,
        verdict=answer,
        metric=headline.metric,
        items=tuple(dict.fromkeys(part.item for part in parts)),
        value=headline.value,
        bridge_value=headline.bridge_value,
        delta=estimate.value,
        low=estimate.low,
        high=estimate.high,
        mde=estimate.mde,
        regressions=regressions,
        why=_why(aim, headline.definition, estimate, answer, regressions),
        companion=companion_verdict(aim, deltas, beside) if answer == "undecided" else None,
    )


def needed_gain(aim: Aim) -> float:
    """Return the gain that a step must be shown to have."""
    return aim.margin if aim.want == "improve" else -aim.margin


def _held_to_margin(estimate: Estimate, aim: Aim, sign: int, alpha: float) -> Estimate:
    """Extend an interval that excludes the margin where the exact test does not to it."""
    if estimate.counts is None or estimate.low is None or estimate.high is None:
        return estimate
    bound = sign * needed_gain(aim)
    low, high = estimate.low, estimate.high
    if low > bound and (p_beyond(estimate, bound, above=True) or 0.0) >= alpha / 2:
        return replace(estimate, low=math.nextafter(bound, -math.inf))
    if high < bound and (p_beyond(estimate, bound, above=False) or 0.0) >= alpha / 2:
        return replace(estimate, high=math.nextafter(bound, math.inf))
    return estimate


def answer_of(aim: Aim, low: float | None, high: float | None) -> Answer:
    """Return the answer to an aim by the interval of the gain."""
    if low is None or high is None:
        return "undecided"
    if aim.want == "improve":
        return "met" if low > aim.margin else "not met" if high <= aim.margin else "undecided"
    return "met" if low >= -aim.margin else "not met" if high < -aim.margin else "undecided"


def _regressions(
    aim: Aim, parts: Sequence[Delta], deltas: Sequence[Delta], alpha: float
) -> tuple[str, ...]:
    """Return the names of an aim's items that are significantly worse, for a `keep` by more than its margin.

    By the step's family of tests; secondary metrics, which are not in it, are a family of their own.
    """
    is_secondary = any(part.is_secondary for part in parts)
    tests = parts if is_secondary else [delta for delta in deltas if delta.primary]
    p_values = {delta.key: delta.estimate.p for delta in tests}
    own = [part for part in parts if part.key in p_values]
    for part in own if aim.want == "keep" else ():
        beyond = p_beyond(part.estimate, -aim.margin * part.sign, above=part.sign < 0)
        p_values[part.key] = None if beyond is None else min(1.0, 2 * beyond)
    adjusted = holm(p_values)
    return tuple(
        _name(part)
        for part in own
        if (p := adjusted[part.key]) is not None and p < alpha and part.gain < 0
    )


def _name(delta: Delta) -> str:
    return delta.metric.removeprefix("delta_") if TIERS[delta.tier].rates else delta.item


def _why(
    aim: Aim, metric: Metric, estimate: Estimate, answer: Answer, regressions: tuple[str, ...]
) -> str:
    if estimate.low is None or estimate.high is None:
        return f"{metric.words} {metric.change(estimate.value)}; {estimate.note}"
    change = metric.change(estimate.value, estimate.low, estimate.high)
    text = f"{metric.words} {change}, margin {metric.size(aim.margin)}"
    if regressions:
        beyond = " by more than the margin" if aim.want == "keep" else ""
        text += f"; significantly worse{beyond}: {', '.join(regressions)}"
    if answer == "undecided" and estimate.mde is not None:
        text += f"; could only detect changes of {metric.change(estimate.mde, sign='')} or more"
    if estimate.is_skewed:
        text += "; few and skewed differences: it errs more often than its level says"
    return text
