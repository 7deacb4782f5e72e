"""Differences of rates over the same items, exact where few items differ.

Items that are right on both sides, or wrong on both, say nothing of a difference; what is left are
the discordant ones, `wins` and `losses`. With at least FEW of them Student's t holds. Below:

    p-value    exact binomial: a fair coin for each discordant item (McNemar's exact test)
    interval   Tango's score interval (Statistics in Medicine 17, 1998), which also holds for no
               discordant item at all: +-z^2 / (n + z^2), the score test's rule of three. Where the
               exact test does not reject, zero is inside: the interval is extended to it.
    mde        at least the difference that gives six discordant items on one side with
               probability POWER: with five, the exact test cannot reject at 0.05.

Credits between 0 and 1 (candidates that share the best score) count as parts of wins and losses.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from scipy import special

from evaluation.bridge.statistics import (
    ALPHA,
    POWER,
    Estimate,
    Floats,
    from_standard_error,
    paired_mean,
    quantile,
    unknown,
)

FEW = 25
"""Discordant items below which the exact test is used."""

HALVINGS = 50
"""Of an interval of at most 2: to the last digit. scipy.optimize takes longer to import than to use,
and every step's deltas are a process of their own."""

FEWEST_TO_REJECT = 6
"""2 * 0.5^6 < 0.05 < 2 * 0.5^5."""


def paired_rate(ours: Floats, theirs: Floats, clusters: Sequence[str] | None = None) -> Estimate:
    """Difference of the mean credits, in [0, 1] each, over the same items.

    Few discordant items in clusters: the exact result, or the clustered one where it is wider, as
    neither is sure there.
    """
    difference = ours - theirs
    n, discordant = len(difference), int(np.count_nonzero(difference))
    if n < 2:
        return unknown(
            float(difference.mean()), n=n, units=n, note="no interval: one item, no spread is seen"
        )
    by_t = paired_mean(ours, theirs, clusters)
    if discordant >= FEW:
        return by_t
    exact = _exact(difference)
    is_wider = by_t.se is not None and exact.se is not None and by_t.se > exact.se
    if clusters is None:
        return exact
    return by_t if is_wider else replace(exact, units=by_t.units)


def _exact(difference: Floats) -> Estimate:
    n = len(difference)
    wins, losses = float(difference[difference > 0].sum()), float(-difference[difference < 0].sum())
    up, down = int((difference > 0).sum()), int((difference < 0).sum())
    p = min(1.0, 2 * float(special.bdtr(min(up, down), up + down, 0.5)))
    low, high = tango_interval(wins, losses, n)
    value = (wins - losses) / n
    se = (high - low) / 2 / quantile(1 - ALPHA / 2, None)
    estimate = from_standard_error(value, se, None, n=n, units=n, method="exact binomial, Tango")
    if p >= ALPHA:
        low, high = min(low, 0.0), max(high, 0.0)
    seen = _smallest_seen(n)
    return replace(
        estimate,
        low=low,
        high=high,
        p=p,
        mde=None if seen is None or estimate.mde is None else min(1.0, max(estimate.mde, seen)),
        note=_note(up + down, n),
    )


def _note(discordant: int, n: int) -> str:
    if n < FEWEST_TO_REJECT:
        return f"{n} items: the exact test can never reject with fewer than {FEWEST_TO_REJECT}"
    if discordant == 0:
        return "no item differs: the interval is what that many equal items leave possible"
    return f"{discordant} of {n} items differ"


def _smallest_seen(n: int) -> float | None:
    """The difference d for which P(Binomial(n, d) >= 6) = POWER; None for fewer than 6 items."""
    if n < FEWEST_TO_REJECT:
        return None
    return float(special.betaincinv(FEWEST_TO_REJECT, n - FEWEST_TO_REJECT + 1, POWER))


def tango_interval(wins: float, losses: float, n: int) -> tuple[float, float]:
    """All differences that the score test for paired rates does not reject at ALPHA.

    The score is (wins - losses - n d) / sqrt(n (2 q + d (1 - d))), with q the rate of losses that
    is likeliest given d: the root of 2n q^2 + (-wins - losses + (2n - wins + losses) d) q
    - losses d (1 - d).
    """
    z = quantile(1 - ALPHA / 2, None)
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
    for _ in range(HALVINGS):
        middle = (near + end) / 2
        near, end = (near, middle) if excess(middle) > 0 else (middle, end)
    return near
