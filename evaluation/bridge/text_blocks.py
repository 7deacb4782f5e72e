"""Differences of nats per token or byte, and of perplexities, over blocks of text in its order.

    ratio R = sum d / sum w      u_i = (d_i - R w_i) / sum w
    exp(A) - exp(B), A and B     u_i = exp(A) (a_i - A w_i) / sum w - exp(B) (b_i - B w_i) / sum w
      both such ratios           (delta method; a and b stay paired, so their covariance counts)

Neighbouring blocks may hold parts of one document. The variance of a sum of dependent values is their
spectrum at frequency zero. It is estimated by the mean square of the first few cosine coefficients of
the sequence, which are nearly independent, so that Student's t with as many degrees of freedom holds
(Mueller, Journal of Econometrics 141, 2007; Lazarus, Lewis, Stock and Watson, Journal of Business and
Economic Statistics 36, 2018). More cosines vary less, but reach to frequencies at which the spectrum
is lower. How many is chosen from the data:

    bias       (pi B / n)^2 k / 6 of the variance, with k the curvature of the spectrum at zero: that
               of an AR(1) process (Andrews 1991), or sum 2 j^2 r_j / (1 + sum 2 r_j) over the first
               autocorrelations that are clearly above zero (Newey and West 1994), where it is larger
    noise      2 / B of the variance, squared
    B          where the squared bias and the noise together are smallest, but with a bias of at most
               BIAS and at most n^(2/3), which guards against dependence that reaches further than
               the pilots and costs a few per cent of the interval's width

Without any sign of dependence the blocks count as independent.
"""

import math
from dataclasses import replace

import numpy as np

from evaluation.bridge.statistics import (
    Estimate,
    by_t,
    from_spread,
    identical,
    skewness_of,
    unknown,
)
from evaluation.metrics.spread import Floats, Spread

LEAST = 4
"""Cosines; with fewer, Student's t is of no use."""

BIAS = 0.05

FEWEST = 20
"""Blocks, or batches of them, from which skewness is estimated."""

LARGEST_CARRY = 0.95


def paired_ratio(ours: Floats, theirs: Floats, weights: Floats) -> Estimate:
    """Return sum(ours - theirs) / sum(weights), e.g. nats over tokens.

    For bits per byte the weights are bytes times ln 2.
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
    """Return ppl_ours - ppl_theirs from the nats and scored tokens of the same blocks.

    `scales` are the perplexities that the blocks contribute to, if not their own.
    """
    if np.array_equal(ours, theirs):
        return identical(n=len(ours))
    own = tuple(math.exp(nats.sum() / tokens.sum()) for nats in (ours, theirs))
    scale_ours, scale_theirs = scales or own
    influence = scale_ours * ratio_influence(ours, tokens)
    influence -= scale_theirs * ratio_influence(theirs, tokens)
    return _from_blocks(own[0] - own[1], influence, "paired ratio, delta method, t")


def ratio_influence(amounts: Floats, weights: Floats) -> Floats:
    """Return what each block contributes to sum(amounts) / sum(weights)."""
    total = weights.sum()
    influence: Floats = (amounts - amounts.sum() / total * weights) / total
    return influence


def _from_blocks(value: float, influence: Floats, method: str) -> Estimate:
    n = len(influence)
    if n < 2:
        return unknown(value, n=n, units=1, note="no interval: one item, so no spread is seen")
    spread = serial_spread(influence)
    return from_spread(value, spread, n, _batch_skewness(influence, spread), method)


def unpaired_difference(ours: Estimate, theirs: Estimate) -> Estimate:
    """Return the difference of estimates from two samples; degrees of freedom by Welch."""
    value = ours.value - theirs.value
    n, units = ours.n + theirs.n, ours.units + theirs.units
    a, b = ours.spread, theirs.spread
    if a is None or b is None:
        note = (ours if a is None else theirs).note or "no interval: one side has none"
        return unknown(value, n=n, units=units, note=note)
    variance = a.variance + b.variance
    df = variance**2 / (a.variance**2 / a.df + b.variance**2 / b.df)
    third = ours.skew * a.variance**1.5 - theirs.skew * b.variance**1.5
    independent = np.concatenate([a.independent, -b.independent])
    dependent = np.concatenate([_scaled_units(a), -_scaled_units(b)])
    known = Estimate(value=value, n=n, units=units, method="two samples, t (Welch)", df=df)
    spread = Spread(independent, dependent, units, df)
    return by_t(replace(known, se=math.sqrt(variance), skew=third / variance**1.5, spread=spread))


def _scaled_units(spread: Spread) -> Floats:
    """Return what the variance is of, scaled where that of independent items is larger."""
    units = spread.independent if spread.dependent is None else spread.dependent
    return units * math.sqrt(spread.variance / float(units @ units))


def serial_spread(influence: Floats) -> Spread:
    """Return the spread of influences (blocks,); never below that of independent blocks."""
    n = len(influence)
    independent = influence * math.sqrt(n / (n - 1))
    curvature = _spectral_curvature(influence)
    if curvature <= 0 or n < 2 * LEAST:
        return Spread(independent, None, n, n - 1)
    bias = curvature / 6 * (math.pi / n) ** 2
    count = max(LEAST, int(min((4 * bias**2) ** -0.2, math.sqrt(BIAS / bias), n ** (2 / 3))))
    return Spread(independent, cosines(influence, count), n, count)


def cosines(influence: Floats, count: int) -> Floats:
    """Return the first coefficients (count,), scaled so that their squares add up to the variance.

    sum_t u_t cos(pi j (t + 1/2) / n) for j = 1.., by a Fourier transform of the even positions
    followed by the odd ones backwards.
    """
    n = len(influence)
    turned = np.concatenate([influence[::2], influence[1::2][::-1]])
    turns = np.exp(-0.5j * np.pi * np.arange(1, count + 1) / n)
    coefficients = (np.fft.fft(turned)[1 : count + 1] * turns).real
    return np.asarray(coefficients * math.sqrt(2 / count), dtype=np.float64)


def _spectral_curvature(influence: Floats) -> float:
    """Return -f''(0) / f(0) of the spectrum f, by the larger of two pilots; 0 for white noise."""
    n, total = len(influence), float(influence @ influence)
    if total == 0 or n < 3:
        return 0.0
    lags = min(int(8 * (n / 100) ** (2 / 9)), n // 4)
    found = [float(influence[lag:] @ influence[:-lag]) / total for lag in range(1, lags + 1)]
    first = found[0] if found else 0.0
    carry = min(max(0.0, first + (1 + 3 * first) / n), LARGEST_CARRY)  # its bias taken off
    clear = [(lag, r) for lag, r in enumerate(found, 1) if r > 2 / math.sqrt(n)]
    by_lags = sum(2 * lag**2 * r for lag, r in clear) / (1 + sum(2 * r for _, r in clear))
    return max(2 * carry / (1 - carry) ** 2, by_lags)


def _batch_skewness(influence: Floats, spread: Spread) -> float:
    """Return the skewness of the sum of influences; 0 for fewer than FEWEST, which cannot tell.

    Dependent blocks are added up in batches first, so long that these hardly depend on each other.
    """
    cosines_used = 0 if spread.dependent is None else 2 * len(spread.dependent)
    length = max(1, len(influence) // cosines_used) if cosines_used else 1
    batches = np.add.reduceat(influence, np.arange(0, len(influence), length))
    if len(batches) < FEWEST:
        return 0.0
    batches = batches - batches.mean()
    return skewness_of(batches, float(batches @ batches))
