"""Differences of nats per token or byte, and of perplexities, over blocks of text in its order.

    ratio R = sum d / sum w      u_i = (d_i - R w_i) / sum w
    exp(A) - exp(B), A and B     u_i = exp(A) (a_i - A w_i) / sum w - exp(B) (b_i - B w_i) / sum w
      both such ratios           (delta method; a and b stay paired, so their covariance counts)

How neighbouring blocks depend on each other is in `metrics.serial_dependence`.
"""

import math
from dataclasses import replace

import numpy as np

from evaluation.bridge.estimate import Estimate, identical, unknown
from evaluation.bridge.skewed_t import by_t, skewness_of
from evaluation.bridge.statistics import from_variance
from evaluation.metrics.serial_dependence import ratio_influence, serial_variance
from evaluation.metrics.variance import Floats, Variance

FEWEST = 20
"""Blocks, or batches of them, from which skewness is estimated."""


def paired_ratio(ours: Floats, theirs: Floats, weights: Floats) -> Estimate:
    """Return the difference of two ratios with one denominator, such as nats per token.

    Args:
        ours: Nats of our side by block, shape (blocks,), in the text's order.
        theirs: Nats of the other side for the same blocks.
        weights: Denominator by block: tokens, or bytes times ln 2 for bits per byte.

    Returns:
        sum(ours - theirs) / sum(weights).
    """
    if np.array_equal(ours, theirs):
        return identical(n=len(ours))
    value = float((ours - theirs).sum() / weights.sum())
    return _from_blocks(value, ratio_influence(ours - theirs, weights), "paired ratio, t")


def paired_perplexity(
    ours: Floats,
    theirs: Floats,
    tokens: Floats,
    scales: tuple[float, float] | None = None,
) -> Estimate:
    """Return the difference of two perplexities over the same blocks.

    Args:
        ours: Nats of our side by block, shape (blocks,), in the text's order.
        theirs: Nats of the other side for the same blocks.
        tokens: Scored tokens by block.
        scales: Perplexities of both sides that the blocks contribute to; None for the blocks' own.

    Returns:
        ppl_ours - ppl_theirs of these blocks.
    """
    if np.array_equal(ours, theirs):
        return identical(n=len(ours))
    own = tuple(math.exp(nats.sum() / tokens.sum()) for nats in (ours, theirs))
    scale_ours, scale_theirs = scales or own
    influence = scale_ours * ratio_influence(ours, tokens)
    influence -= scale_theirs * ratio_influence(theirs, tokens)
    return _from_blocks(own[0] - own[1], influence, "paired ratio, delta method, t")


def _from_blocks(value: float, influence: Floats, method: str) -> Estimate:
    n = len(influence)
    if n < 2:
        return unknown(
            value, n=n, units=1, note="no interval: one item, so its variance is not known"
        )
    variance = serial_variance(influence)
    return from_variance(value, variance, n, _batch_skewness(influence, variance), method)


def unpaired_difference(ours: Estimate, theirs: Estimate) -> Estimate:
    """Return the difference of estimates from two samples; degrees of freedom by Welch.

    Args:
        ours: Estimate of our side.
        theirs: Estimate of the other side, of independent units.

    Returns:
        ours - theirs; without interval where one of them has none.
    """
    value = ours.value - theirs.value
    n, units = ours.n + theirs.n, ours.units + theirs.units
    a, b = ours.variance, theirs.variance
    if a is None or b is None:
        note = (ours if a is None else theirs).note or "no interval: one side has none"
        return unknown(value, n=n, units=units, note=note)
    total = a.value + b.value
    df = total**2 / (a.value**2 / a.df + b.value**2 / b.df)
    third = ours.skew * a.value**1.5 - theirs.skew * b.value**1.5
    independent = np.concatenate([a.independent, -b.independent])
    dependent = np.concatenate([_scaled_units(a), -_scaled_units(b)])
    known = Estimate(value=value, n=n, units=units, method="two samples, t (Welch)", df=df)
    variance = Variance(independent, dependent, units, df)
    return by_t(replace(known, se=math.sqrt(total), skew=third / total**1.5, variance=variance))


def _scaled_units(variance: Variance) -> Floats:
    """Return what the variance is of, scaled where that of independent items is larger."""
    units = variance.independent if variance.dependent is None else variance.dependent
    return units * math.sqrt(variance.value / float(units @ units))


def _batch_skewness(influence: Floats, variance: Variance) -> float:
    """Return the skewness of the sum of influences; 0 for fewer than FEWEST, which cannot tell.

    Dependent blocks are added up in batches first, so long that these hardly depend on each other.
    """
    cosines_used = 0 if variance.dependent is None else 2 * len(variance.dependent)
    length = max(1, len(influence) // cosines_used) if cosines_used else 1
    batches = np.add.reduceat(influence, np.arange(0, len(influence), length))
    if len(batches) < FEWEST:
        return 0.0
    batches = batches - batches.mean()
    return skewness_of(batches, float(batches @ batches))
