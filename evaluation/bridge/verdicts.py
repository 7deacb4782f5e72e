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

A tier's secondary metrics (`companions`) move with every question, where an accuracy moves only with
those whose verdict changes. They are of no family of tests and change no verdict: where an aim is
undecided on the headline, the first one of its tier tells, over the same items and at the same level,
whether the step is better.

A step's own verdict is the conjunction of its aims. Each must be met on its own, which needs no
further correction: claiming all of them wrongly is no likelier than claiming the likeliest one
wrongly. What choosing among several steps asks for beyond that comes in as `alpha`, see
`simultaneous_intervals`.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from evaluation.bridge.delta import OVERALL, Delta, change_columns, group_item, macro
from evaluation.bridge.pairing import AGAIN
from evaluation.bridge.simultaneous_intervals import at_level, p_beyond
from evaluation.bridge.statistics import ALPHA, Estimate, holm
from evaluation.errors import BridgeError
from evaluation.results.deltas_file import AimRow, Answer, CompanionRow
from evaluation.settings.objectives import Aim
from evaluation.settings.tiers import TIERS, Metric


def judge_step(
    objective: Sequence[Aim],
    deltas: Sequence[Delta],
    stage: str,
    alphas: Sequence[float] | None = None,
    companion_alphas: Sequence[float] | None = None,
) -> list[AimRow]:
    """Return one verdict for each aim.

    `alphas` are the levels that the aims are judged at, if not at ALPHA; `companion_alphas`
    are those of their secondary metrics.

    Raises:
        BridgeError: an aim is at what was not scored.
    """
    plain = [ALPHA] * len(objective)
    levels = zip(alphas or plain, companion_alphas or plain, strict=True)
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
    aim: Aim,
    deltas: Sequence[Delta],
    key: str,
    alpha: float = ALPHA,
    companion_alpha: float = ALPHA,
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
        mde=estimate.mde,
        regressions=regressions,
        why=_why(aim, headline.definition, estimate, answer, regressions),
        companion=companion_verdict(aim, deltas, companion_alpha)
        if answer == "undecided"
        else None,
        **change_columns((headline.value, headline.bridge_value), estimate),
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
        text += f"; {worse_in_words(aim.want, regressions)}"
    if answer == "undecided" and estimate.mde is not None:
        text += f"; {detectable_in_words(metric, estimate.mde)}"
    if estimate.is_skewed:
        text += "; few and skewed differences: it errs more often than its level says"
    return text


def worse_in_words(want: str, regressions: Sequence[str]) -> str:
    """Return which items of an aim are significantly worse."""
    beyond = " by more than the margin" if want == "keep" else ""
    return f"significantly worse{beyond}: {', '.join(regressions)}"


def detectable_in_words(metric: Metric, mde: float) -> str:
    """Return what an undecided aim could have shown."""
    return f"could only detect changes of {metric.change(mde, sign='')} or more"


def aimed_at(aim: Aim, deltas: Sequence[Delta], key: str) -> tuple[list[Delta], Delta]:
    """Return the deltas of an aim's items, and the one it is decided on; `key` is its place.

    Raises:
        BridgeError: nothing of it was scored.
    """
    own, headline = _find(aim, deltas)
    if headline is None:
        group = f" of the group {aim.group!r}" if aim.group else ""
        if aim.metric is not None and _find(aim.model_copy(update={"metric": None}), deltas)[1]:
            raise BridgeError(
                f"{key}: it aims at {aim.metric} of {aim.tier}{group}, which needs each candidate's "
                "log-probability; score both sides with per-item tables, or leave `metric` out"
            )
        raise BridgeError(
            f"{key}: it aims at {aim.tier}{group}, of which the two sides have no item in common; "
            f"{AGAIN}"
        )
    return own, headline


def _find(aim: Aim, deltas: Sequence[Delta]) -> tuple[list[Delta], Delta | None]:
    """Return the deltas of an aim's items, and their mean; of a tier of rates, its rate alone."""
    own, item = [delta for delta in deltas if delta.tier == aim.tier], aim.group or OVERALL
    metric = f"delta_{aim.decided_on.name}"
    if TIERS[aim.tier].rates:
        own = [delta for delta in own if delta.item == item]
        return own, next((delta for delta in own if delta.metric == metric), None)
    own = [delta for delta in own if delta.metric == metric]
    named = [delta for delta in own if aim.group and delta.item == group_item(aim.group)]
    items = [delta for delta in own if not delta.is_mean]
    if named:  # a group of the suite
        weights = named[0].estimate.weights
        return [delta for delta in items if delta.item in weights], replace(named[0], item=item)
    own = [delta for delta in items if aim.group in (None, delta.group)]
    return own, macro(own, item=item) if own else None


def gain_interval(sign: int, known: Estimate) -> tuple[float | None, float | None]:
    """Return the interval of the gain, where `sign` is that of a difference that is one."""
    if known.low is None or known.high is None:
        return None, None
    return (known.low, known.high) if sign > 0 else (-known.high, -known.low)


def companion_delta(aim: Aim, deltas: Sequence[Delta]) -> Delta | None:
    """Return the delta of the tier's first secondary metric over an aim's items.

    None where there is none, or where the aim names such a metric itself.
    """
    companions = TIERS[aim.tier].companions
    if not companions or aim.decided_on.companion:
        return None
    names = {delta.item for delta in _find(aim, deltas)[0]}
    same = [delta for delta in deltas if delta.item in names or delta.is_mean]
    return _find(aim.model_copy(update={"metric": companions[0].name}), same)[1]


def companion_verdict(aim: Aim, deltas: Sequence[Delta], alpha: float) -> CompanionRow | None:
    """Return what a secondary metric tells of an undecided aim; None where nothing is known of it."""
    delta = companion_delta(aim, deltas)
    if delta is None:
        return None
    known = at_level(delta.estimate, alpha)
    low, high = gain_interval(delta.sign, known)
    if low is None or high is None:
        return None
    says: Literal["better", "worse", "undecided"] = (
        "better" if low > 0 else "worse" if high < 0 else "undecided"
    )
    metric = delta.definition
    shown = f"undecided too, {metric.change(known.value, known.low, known.high)}"
    if says != "undecided":  # by its size, whichever sign means better
        low, high = sorted((abs(low), abs(high)))
        size = metric.change(abs(known.value), low, high, sign="")
        shown = f"{says} by {size}"
    group = f" of {aim.group}" if aim.group else ""
    sentence = f"{aim.decided_on.words}{group} undecided; {metric.words} {shown}"
    bounds: dict[str, Any] = {"delta": known.value, "low": known.low, "high": known.high}
    return CompanionRow(metric=delta.metric, says=says, sentence=sentence, **bounds)
