"""An estimate of a difference: its interval, p-value and smallest detectable effect, and when it has none."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from scipy import special

from evaluation.metrics.variance import Variance

CONFIDENCE = 0.95


ALPHA = 1 - CONFIDENCE


POWER = 0.8


STRONG = 0.25
"""Skewness of an estimate beyond which more than the nominal share of intervals misses the truth."""


class Counts(NamedTuple):
    """Items that pass on our side alone, on theirs alone, and all items."""

    wins: int
    losses: int
    n: int


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A difference; what cannot be known is None, and `note` states why.

    `units` counts what is independent: items, or clusters. `df` None stands for the normal
    distribution. `p` is two-sided, of no difference. `mde` is the smallest true difference that a
    test at ALPHA finds with probability POWER. `skew` is the estimate's own skewness; `counts` are
    there where the exact test holds, see `paired_binary`. `variance`, and `parts` of a mean with
    their `weights`, serve to compare steps.
    """

    value: float
    n: int
    units: int
    method: str
    se: float | None = None
    df: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    mde: float | None = None
    note: str | None = None
    skew: float = 0.0
    counts: Counts | None = None
    variance: Variance | None = field(default=None, repr=False, compare=False)
    parts: "Mapping[str, Estimate]" = field(default_factory=dict, repr=False, compare=False)
    weights: Mapping[str, float] = field(default_factory=dict, repr=False, compare=False)

    @property
    def is_skewed(self) -> bool:
        """Whether few units and much skewness leave more errors than the interval allows for."""
        return self.counts is None and abs(self.skew) > STRONG


def quantile(probability: float, df: float | None) -> float:
    """Return a quantile of Student's t or of the normal distribution.

    Args:
        probability: Probability of a smaller value.
        df: Degrees of freedom; None for the normal distribution.

    Returns:
        The value, in standard errors.
    """
    return float(special.ndtri(probability) if df is None else special.stdtrit(df, probability))


def upper_tail(z: float, df: float | None) -> float:
    """Return the probability of a larger value, by Student's t or the normal distribution.

    Args:
        z: A value, in standard errors.
        df: Degrees of freedom; None for the normal distribution.

    Returns:
        One-sided probability.
    """
    return float(special.ndtr(-z) if df is None else special.stdtr(df, -z))


def unknown(value: float, *, n: int, units: int, note: str) -> Estimate:
    """Return a difference of which no more is known.

    Args:
        value: The difference.
        n: Items that it is over.
        units: Items or clusters that are independent.
        note: Reason, for people.

    Returns:
        An estimate without interval.
    """
    return Estimate(value=value, n=n, units=units, method="none", note=note)


def identical(*, n: int) -> Estimate:
    """Return no difference, without doubt: the same scores to the last digit on every item.

    Args:
        n: Items that it is over.

    Returns:
        An estimate of 0 whose interval has no width.
    """
    note = "both sides score the same on every item"
    known = Estimate(value=0.0, n=n, units=n, method="identical", se=0.0, low=0.0, high=0.0)
    return replace(known, p=1.0, note=note, variance=Variance(np.zeros(n), None, n, max(1, n - 1)))
