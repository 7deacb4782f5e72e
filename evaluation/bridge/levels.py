"""What an estimate says at any level of confidence, by its own method.

An interval that is to hold for several estimates at once is each one's own interval at a stricter
level, so that exact, skewed and ordinary ones go together.
"""

from dataclasses import replace

from evaluation.bridge.discordance import exact_interval, exact_p_beyond
from evaluation.bridge.statistics import (
    ALPHA,
    POWER,
    Estimate,
    interval_by_t,
    p_beyond_by_t,
    quantile,
)


def at_level(estimate: Estimate, alpha: float) -> Estimate:
    """The same estimate with the interval of confidence 1 - alpha and the effect it can show."""
    if estimate.se is None or estimate.method == "identical" or alpha == ALPHA:
        return estimate
    if estimate.counts is not None:
        low, high = exact_interval(estimate.counts, alpha)
    else:
        low, high = interval_by_t(estimate, alpha)
    by_t = (quantile(1 - alpha / 2, estimate.df) + quantile(POWER, estimate.df)) * estimate.se
    mde = None if estimate.mde is None else max(estimate.mde, by_t)
    return replace(estimate, low=low, high=high, mde=mde)


def p_beyond(estimate: Estimate, bound: float, *, above: bool) -> float | None:
    """One-sided p-value of the claim that the true difference lies above (or below) `bound`."""
    if estimate.counts is not None:
        return exact_p_beyond(estimate.counts, bound, above=above)
    return None if estimate.se is None else p_beyond_by_t(estimate, bound, above=above)
