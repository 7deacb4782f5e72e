"""Differences of credits: by exact tests where few items differ, else by Student's t.

Intervals, MDE and p-values at another alpha or bound are here, too: by these tests, or by Student's t.

Items that are right on both sides, or wrong on both, say nothing about a difference; only discordant
items do. With at least FEW of them Student's t is used. With fewer, p-value and interval are those of
`exact_tests`, and

    mde        at least the difference that gives six discordant items on one side with
               probability POWER: with five, the exact test cannot reject at 0.05.

All this is for items that pass or fail. Where a side has credits in between (means over samples,
candidates that share the best score), the difference is a mean of real numbers: Student's t.
"""

import math
from dataclasses import replace

import numpy as np
from scipy import special

from evaluation.bridge.estimate import (
    ALPHA,
    POWER,
    Estimate,
    PairCounts,
    by_t,
    derived,
    detectable_by_t,
    interval_by_t,
    limited,
    p_beyond_by_t,
    quantile,
    unknown,
)
from evaluation.bridge.exact_tests import exact_interval, mcnemar, tango_interval, unconditional_p
from evaluation.bridge.statistics import mean_difference
from evaluation.metrics.differences import Differences
from evaluation.metrics.layout import Layout, Names
from evaluation.metrics.variance import Floats, influence_variance

FEW = 25
"""Discordant items below which the exact test is used."""

FEWEST_TO_REJECT = 6
"""2 * 0.5^6 < 0.05 < 2 * 0.5^5."""


def paired_rate(
    ours: Floats, theirs: Floats, clusters: Names = None, strata: Names = None
) -> Estimate:
    """Return the difference of the mean credits in [0, 1] over the same items, (n,) on each side."""
    passes = bool(np.isin([ours, theirs], (0.0, 1.0)).all())
    layout = Layout(len(ours), clusters, strata)
    return credit_difference(
        Differences(kind="credit", amounts=ours - theirs, layout=layout, passes=passes)
    )


def credit_difference(differences: Differences) -> Estimate:
    """Return the difference of mean credits of items that could all be judged, in fractions.

    With few discordant items in clusters, it is the exact result or the clustered one, whichever is
    wider, as neither is certain. With none, clusters are what was drawn: each may change as a whole.
    """
    return replace(limited(_credit_difference(differences), 1.0), differences=differences)


def _credit_difference(differences: Differences) -> Estimate:
    difference = differences.amounts
    n, discordant = len(difference), int(np.count_nonzero(difference))
    is_binary = not discordant or differences.passes
    if is_binary and n < 2:
        note = "no interval: one item, so its variance is not known"
        return unknown(float(difference.mean()), n=n, units=n, note=note)
    estimate = mean_difference(differences)
    if not is_binary:
        # Items that are equal on both sides say little about the size of a change: with four items that
        # all changed in one direction, t with n - 1 degrees of freedom rejects; the exact test would not.
        df = max(1, discordant - 1)
        has_more = estimate.se is not None and (estimate.df is None or estimate.df > df)
        return by_t(replace(estimate, df=df)) if has_more else estimate
    if discordant >= FEW:
        return estimate
    exact = _exact(difference, differences.layout)
    if differences.layout.groups is None or exact.se is None:
        return exact
    is_wider = estimate.se is not None and estimate.se > exact.se
    return estimate if is_wider else replace(exact, units=estimate.units)


def _exact(difference: Floats, layout: Layout) -> Estimate:
    n = len(difference)
    wins, losses = int((difference > 0).sum()), int((difference < 0).sum())
    drawn = n if wins + losses or layout.groups is None else 1 + int(layout.groups.max())
    value, counts = (wins - losses) / n, PairCounts(wins, losses, drawn)
    low, high = tango_interval(*counts, ALPHA)
    se = (high - low) / 2 / quantile(1 - ALPHA / 2, None)
    low, high = exact_interval(counts, ALPHA)
    variance = influence_variance((difference - value) / n, Layout(n))._replace(layout=layout)
    estimate = Estimate(
        value=value,
        n=n,
        units=drawn,
        method="exact binomial, Tango",
        se=se,
        low=low,
        high=high,
        p=mcnemar(wins, losses),
        note=_note(wins + losses, drawn, "cluster" if drawn < n else "item"),
        skew=float((variance.independent**3).sum() / se**3),
        counts=counts,
        variance=variance,
    )
    return replace(estimate, mde=_exact_detectable(estimate, ALPHA))


def at_alpha(estimate: Estimate, alpha: float) -> Estimate:
    """Return the same estimate with the interval, if it has one, and the MDE of another alpha.

    Args:
        alpha: Error rate of the two-sided interval, one minus its confidence.
    """
    if estimate.se is None or estimate.method == "identical":
        return estimate
    if estimate.base is not None and estimate.link is not None:
        return derived(at_alpha(estimate.base, alpha), estimate.link)
    if estimate.counts is not None:
        low, high = exact_interval(estimate.counts, alpha)
    else:
        low, high = interval_by_t(estimate, alpha)
    wide = replace(estimate, low=low, high=high, mde=detectable(estimate, alpha))
    return limited(wide, estimate.limit)


def detectable(estimate: Estimate, alpha: float) -> float | None:
    """Return the minimum detectable effect (MDE) of an estimate at another alpha, if it has one."""
    if estimate.se is None or estimate.mde is None:
        return None
    if estimate.base is not None and estimate.link is not None:
        return estimate.link.at(detectable(estimate.base, alpha))
    return (detectable_by_t if estimate.counts is None else _exact_detectable)(estimate, alpha)


def p_beyond(estimate: Estimate, bound: float, *, above: bool) -> float | None:
    """Return the one-sided p-value of the claim that the true difference lies beyond a bound.

    Args:
        above: Whether the claim is that it lies above; otherwise below.

    Returns:
        None where the standard error is unknown. Where exact tests are used, that of the
        unconditional test, but never below the binomial test's for a difference of that sign.
    """
    if estimate.counts is None:
        return None if estimate.se is None else p_beyond_by_t(estimate, bound, above=above)
    wins, losses, n = estimate.counts
    if not above:
        wins, losses, bound = losses, wins, -bound
    by_coin = float(special.bdtr(losses, wins + losses, 0.5))
    if bound == 0:
        return by_coin
    p = unconditional_p(wins, losses, n, bound)
    return max(p, by_coin) if bound > 0 else p


def _note(discordant: int, n: int, unit: str) -> str:
    if n < FEWEST_TO_REJECT:
        return (
            f"{n} {unit}{'s' if n != 1 else ''}: the exact test can never reject with fewer than "
            f"{FEWEST_TO_REJECT}"
        )
    if discordant == 0:
        return f"no item differs: the interval is what that many equal {unit}s leave possible"
    return f"{discordant} of {n} items differ"


def _exact_detectable(estimate: Estimate, alpha: float) -> float | None:
    """Return the d for which the exact test finds a difference with probability POWER; None for few items.

    At least the d for which so many of n items change in one direction that the test can reject:
    P(Binomial(n, d) >= k) = POWER, with k the smallest for which 2 * 0.5^k < alpha.
    """
    assert estimate.se is not None
    assert estimate.counts is not None
    n = estimate.counts.n
    fewest = math.floor(1 - math.log2(alpha)) + 1
    if n < fewest:
        return None
    detected = float(special.betaincinv(fewest, n - fewest + 1, POWER))
    by_score = (quantile(1 - alpha / 2, None) + quantile(POWER, None)) * estimate.se
    return min(1.0, max(by_score, detected))
