"""Paired binary tests of a difference of rates: McNemar's exact test, Tango's interval.

Intervals, MDE and p-values at another alpha or bound are here, too: by these tests, or by Student's t.

Items that are right on both sides, or wrong on both, say nothing about a difference; only discordant
items do, `wins` and `losses`. With at least FEW of them Student's t is used. With fewer:

    p-value    exact binomial: a fair coin for each discordant item (McNemar's exact test)
    interval   Tango's score interval (Statistics in Medicine 17, 1998), which also holds for no
               discordant item at all: +-z^2 / (n + z^2), the score test's rule of three. Where the
               exact test does not reject, zero is inside: the interval is extended to it.
    margins    the exact unconditional test of a difference other than zero: the probability of a
               score as large as the observed one, at the rate of losses where it is largest
    mde        at least the difference that gives six discordant items on one side with
               probability POWER: with five, the exact test cannot reject at 0.05.

All this is for items that pass or fail. Where a side has credits in between (means over samples,
candidates that share the best score), the difference is a mean of real numbers: Student's t.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import special

from evaluation.bridge.estimate import (
    ALPHA,
    POWER,
    Counts,
    Estimate,
    by_t,
    detectable_by_t,
    interval_by_t,
    p_beyond_by_t,
    quantile,
    unknown,
)
from evaluation.bridge.statistics import paired_mean
from evaluation.metrics.variance import Floats, grouped_variance

FEW = 25
"""Discordant items below which the exact test is used."""

_HALVINGS = 50
"""Halvings that find a root in an interval of at most 2 to the last digit. Importing scipy.optimize would take
longer, in each step's own process."""

FEWEST_TO_REJECT = 6
"""2 * 0.5^6 < 0.05 < 2 * 0.5^5."""

_UNLIKELY = 1e-4
"""Probability that the true rate of losses is outside the interval that the exact test searches."""


def paired_rate(
    ours: Floats,
    theirs: Floats,
    clusters: Sequence[str] | None = None,
    strata: Sequence[str] | None = None,
) -> Estimate:
    """Return the difference of the mean credits over the same items.

    With few discordant items in clusters, it is the exact result or the clustered one, whichever is
    wider, as neither is certain.

    Args:
        ours: Credits of our side, shape (n,), in [0, 1].
        theirs: Credits of the other side, in the same order.
        clusters: Cluster of each item; None if items are independent.
        strata: Stratum of each item; None without strata.

    Returns:
        The mean of ours - theirs, in fractions.
    """
    difference = ours - theirs
    n, discordant = len(difference), int(np.count_nonzero(difference))
    is_binary = not discordant or bool(np.isin([ours, theirs], (0.0, 1.0)).all())
    if is_binary and n < 2:
        note = "no interval: one item, so its variance is not known"
        return unknown(float(difference.mean()), n=n, units=n, note=note)
    known = paired_mean(ours, theirs, clusters, strata)
    if not is_binary:
        # Items that are equal on both sides say little about the size of a change: with four items that
        # all changed in one direction, t with n - 1 degrees of freedom rejects; the exact test would not.
        df = max(1, discordant - 1)
        has_more = known.se is not None and (known.df is None or known.df > df)
        return by_t(replace(known, df=df)) if has_more else known
    if discordant >= FEW:
        return known
    exact = _exact(difference)
    if clusters is None or exact.se is None:
        return exact
    is_wider = known.se is not None and known.se > exact.se
    return known if is_wider else replace(exact, units=known.units)


def _exact(difference: Floats) -> Estimate:
    n = len(difference)
    wins, losses = int((difference > 0).sum()), int((difference < 0).sum())
    value, counts = (wins - losses) / n, Counts(wins, losses, n)
    low, high = _tango_interval(wins, losses, n, ALPHA)
    se = (high - low) / 2 / quantile(1 - ALPHA / 2, None)
    low, high = _exact_interval(counts, ALPHA)
    variance = grouped_variance((difference - value) / n)
    known = Estimate(
        value=value,
        n=n,
        units=n,
        method="exact binomial, Tango",
        se=se,
        low=low,
        high=high,
        p=mcnemar(wins, losses),
        note=_note(wins + losses, n),
        skew=float((variance.independent**3).sum() / se**3),
        counts=counts,
        variance=variance,
    )
    return replace(known, mde=_exact_detectable(known, ALPHA))


def at_alpha(estimate: Estimate, alpha: float) -> Estimate:
    """Return the same estimate with the interval and MDE of another alpha.

    Args:
        estimate: A difference.
        alpha: Error rate of the two-sided interval, one minus its confidence.

    Returns:
        The estimate; unchanged where it has no interval, or both sides are identical.
    """
    if estimate.se is None or estimate.method == "identical":
        return estimate
    if estimate.counts is not None:
        low, high = _exact_interval(estimate.counts, alpha)
    else:
        low, high = interval_by_t(estimate, alpha)
    return replace(estimate, low=low, high=high, mde=detectable(estimate, alpha))


def detectable(estimate: Estimate, alpha: float) -> float | None:
    """Return the minimum detectable effect (MDE) of an estimate at another alpha.

    Args:
        estimate: A difference.
        alpha: Level of the two-sided test.

    Returns:
        The true difference that the test finds with probability POWER; None where there is none.
    """
    if estimate.se is None or estimate.mde is None:
        return None
    return (detectable_by_t if estimate.counts is None else _exact_detectable)(estimate, alpha)


def p_beyond(estimate: Estimate, bound: float, *, above: bool) -> float | None:
    """Return the one-sided p-value of the claim that the true difference lies beyond a bound.

    Args:
        estimate: A difference.
        bound: Difference that the truth is claimed to lie beyond, in the estimate's unit.
        above: Whether the claim is that it lies above; otherwise below.

    Returns:
        A p-value; None where the standard error is unknown. Where exact tests are used, that of the
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
    p = _unconditional(wins, losses, n, bound)
    return max(p, by_coin) if bound > 0 else p


def mcnemar(wins: int, losses: int) -> float:
    """Return the p-value of McNemar's exact test, that wins are as likely as losses.

    Args:
        wins: Items that pass on our side alone.
        losses: Items that pass on the other side alone.

    Returns:
        Two-sided p-value; 1 where no item differs.
    """
    return min(1.0, 2 * float(special.bdtr(min(wins, losses), wins + losses, 0.5)))


def _exact_interval(counts: Counts, alpha: float) -> tuple[float, float]:
    """Return Tango's interval, with zero in it where the exact test does not reject."""
    low, high = _tango_interval(*counts, alpha)
    is_shown = mcnemar(counts.wins, counts.losses) < alpha
    return (low, high) if is_shown else (min(low, 0.0), max(high, 0.0))


def _unconditional(wins: int, losses: int, n: int, bound: float) -> float:
    """Return the largest probability, over the rate q of losses, of a score as large as the observed one.

    q is searched in its confidence interval, which misses the true rate with probability _UNLIKELY at
    most; that is added to the result (Berger and Boos, JASA 89, 1994).
    """
    most = min((1 - bound) / 2, float(special.gammaincinv(losses + 1, 1 - _UNLIKELY)) / n)
    rates = np.linspace(max(0.0, -bound), max(most, max(0.0, -bound)), 25)
    cap = [min(n, int(x + 8 * math.sqrt(x) + 12)) for x in (n * (rates[-1] + bound), n * rates[-1])]
    w, lost = (grid.ravel() for grid in np.mgrid[0 : cap[0] + 1, 0 : cap[1] + 1].astype(float))
    far = (w + lost <= n) & (_score(w, lost, n, bound) >= _score(wins, losses, n, bound) - 1e-9)
    w, lost = w[far], lost[far]
    rest = n - w - lost
    ways = special.gammaln(n + 1) - special.gammaln([w + 1, lost + 1, rest + 1]).sum(axis=0)
    chances = [
        np.exp(
            ways
            + special.xlogy(w, max(0.0, q + bound))
            + special.xlogy(lost, q)
            + special.xlogy(rest, max(0.0, 1 - bound - 2 * q))
        ).sum()
        for q in rates
    ]
    return min(1.0, float(max(chances)) + _UNLIKELY)


def _score(wins: Floats | float, losses: Floats | float, n: int, d: float) -> Any:
    """Return the score of a difference d, as in `_tango_interval`; 0 where nothing differs and d is 0."""
    linear = -wins - losses + (2 * n - wins + losses) * d
    root = np.sqrt(np.maximum(0.0, linear**2 + 8 * n * losses * d * (1 - d)))
    variance = n * ((root - linear) / (2 * n) + d * (1 - d))
    return (wins - losses - n * d) / np.sqrt(np.maximum(variance, 1e-12))


def _note(discordant: int, n: int) -> str:
    if n < FEWEST_TO_REJECT:
        return f"{n} items: the exact test can never reject with fewer than {FEWEST_TO_REJECT}"
    if discordant == 0:
        return "no item differs: the interval is what that many equal items leave possible"
    return f"{discordant} of {n} items differ"


def _exact_detectable(estimate: Estimate, alpha: float) -> float | None:
    """Return the d for which the exact test finds a difference with probability POWER; None for too few items.

    At least the d for which so many of n items change in one direction that the test can reject:
    P(Binomial(n, d) >= k) = POWER, with k the smallest for which 2 * 0.5^k < alpha.
    """
    assert estimate.se is not None
    n, fewest = estimate.n, math.floor(1 - math.log2(alpha)) + 1
    if n < fewest:
        return None
    detected = float(special.betaincinv(fewest, n - fewest + 1, POWER))
    by_score = (quantile(1 - alpha / 2, None) + quantile(POWER, None)) * estimate.se
    return min(1.0, max(by_score, detected))


def _tango_interval(wins: int, losses: int, n: int, alpha: float) -> tuple[float, float]:
    """Return the range of differences that the score test does not reject.

    The score is (wins - losses - n d) / sqrt(n (2 q + d (1 - d))), with q the rate of losses that
    is likeliest given d: the root of 2n q^2 + (-wins - losses + (2n - wins + losses) d) q
    - losses d (1 - d).
    """
    z = quantile(1 - alpha / 2, None)
    centre = (wins - losses) / n

    def excess(d: float) -> float:
        linear = -wins - losses + (2 * n - wins + losses) * d
        root = math.sqrt(max(0.0, linear**2 + 8 * n * losses * d * (1 - d)))
        q = (root - linear) / (4 * n)
        return (wins - losses - n * d) ** 2 - z**2 * n * (2 * q + d * (1 - d))

    return _root(excess, centre, -1.0), _root(excess, centre, 1.0)


def _root(excess: Callable[[float], float], centre: float, end: float) -> float:
    near = centre + math.copysign(1e-9, end)
    if abs(centre - end) < 1e-9 or excess(end) <= 0:
        return end
    return bisect(lambda d: excess(d) > 0, near, end)[0]


def bisect(is_beyond: Callable[[float], bool], near: float, end: float) -> tuple[float, float]:
    """Return the two ends of a tiny interval around the place where a condition changes.

    Args:
        is_beyond: False at `near`, true at `end`, with one change between them.
        near: End at which the condition is false.
        end: End at which the condition is true; may be less than `near`.

    Returns:
        The last place where the condition is false, and the first one where it is true.
    """
    for _ in range(_HALVINGS):
        middle = (near + end) / 2
        near, end = (near, middle) if is_beyond(middle) else (middle, end)
    return near, end
