"""What an estimate says at any level of confidence, by its own method.

An interval that is to hold for several estimates at once is each one's own interval at a stricter
level, so that exact, skewed and ordinary ones go together.
"""

from dataclasses import replace

from evaluation.bridge.discordance import exact_detectable, exact_interval, exact_p_beyond
from evaluation.bridge.statistics import (
    Estimate,
    detectable_by_t,
    interval_by_t,
    p_beyond_by_t,
)


def at_level(estimate: Estimate, alpha: float) -> Estimate:
    """The same estimate with the interval of confidence 1 - alpha and the effect it can show."""
    if estimate.se is None or estimate.method == "identical":
        return estimate
    if estimate.counts is not None:
        low, high = exact_interval(estimate.counts, alpha)
    else:
        low, high = interval_by_t(estimate, alpha)
    return replace(estimate, low=low, high=high, mde=detectable(estimate, alpha))


def detectable(estimate: Estimate, alpha: float) -> float | None:
    """The smallest true difference that a test at `alpha` finds with probability POWER.

    None where the estimate knows of none.
    """
    if estimate.se is None or estimate.mde is None:
        return None
    exact = estimate.counts is not None
    return exact_detectable(estimate, alpha) if exact else detectable_by_t(estimate, alpha)


def p_beyond(estimate: Estimate, bound: float, *, above: bool) -> float | None:
    """One-sided p-value of the claim that the true difference lies above (or below) `bound`."""
    if estimate.counts is not None:
        return exact_p_beyond(estimate.counts, bound, above=above)
    return None if estimate.se is None else p_beyond_by_t(estimate, bound, above=above)
