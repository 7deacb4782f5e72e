"""Variance of a ratio over blocks of text, where neighbours may hold parts of one document.

The variance of a sum of dependent values is their spectrum at frequency zero. It is estimated by the
mean square of the first few cosine coefficients of the sequence, which are nearly independent, so that
Student's t with as many degrees of freedom holds (Mueller, Journal of Econometrics 141, 2007; Lazarus,
Lewis, Stock and Watson, Journal of Business and Economic Statistics 36, 2018). More cosines give less
noise, but include frequencies at which the spectrum is lower. Their number B is chosen from the data:

    bias       (pi B / n)^2 k / 6 of the variance, with k the curvature of the spectrum at zero: that
               of an AR(1) process (Andrews 1991), or sum 2 j^2 r_j / (1 + sum 2 r_j) over the first
               autocorrelations that are clearly above zero (Newey and West 1994), where it is larger
    noise      2 / B of the variance, squared
    B          minimizes the sum of squared bias and noise, with a bias of at most BIAS, and is at most
               n^(2/3). This guards against dependence that reaches further than the pilot estimates
               of k, and costs a few per cent of the interval's width

Without any sign of dependence the blocks count as independent.
"""

import math

import numpy as np

from evaluation.metrics.layout import Layout
from evaluation.metrics.variance import Floats, Variance, influence_variance

LEAST = 4
"""Fewest cosines; with fewer, Student's t is of no use."""

BIAS = 0.05

LARGEST_CARRY = 0.95


def ratio_influence(amounts: Floats, weights: Floats) -> Floats:
    """Return what each block contributes to a ratio of sums, (blocks,); they add up to zero."""
    total = weights.sum()
    influence: Floats = (amounts - amounts.sum() / total * weights) / total
    return influence


def variance_of(influence: Floats, layout: Layout) -> Variance:
    """Return the variance of an estimate by its influences, with the dependence of its units."""
    if not layout.is_text:
        return influence_variance(influence, layout)
    return serial_variance(influence)._replace(layout=layout)


def serial_variance(influence: Floats) -> Variance:
    """Return the variance of an estimate by influences in text order, at least that of independent ones."""
    n = len(influence)
    independent = influence * math.sqrt(n / (n - 1))
    curvature = _spectral_curvature(influence)
    if curvature <= 0 or n < 2 * LEAST:
        return Variance(independent, None, n, n - 1)
    bias = curvature / 6 * (math.pi / n) ** 2
    count = max(LEAST, int(min((4 * bias**2) ** -0.2, math.sqrt(BIAS / bias), n ** (2 / 3))))
    return Variance(independent, cosines(influence, count), n, count)


def cosines(influence: Floats, count: int) -> Floats:
    """Return the first cosine coefficients of influences; their squares add up to the variance.

    sum_t u_t cos(pi j (t + 1/2) / n) for j = 1.., by a Fourier transform of the even positions
    followed by the odd ones backwards.
    """
    n = len(influence)
    turned = np.concatenate([influence[::2], influence[1::2][::-1]])
    turns = np.exp(-0.5j * np.pi * np.arange(1, count + 1) / n)
    coefficients = (np.fft.fft(turned)[1 : count + 1] * turns).real
    return np.asarray(coefficients * math.sqrt(2 / count), dtype=np.float64)


def _spectral_curvature(influence: Floats) -> float:
    """Return -f''(0) / f(0) of the spectrum f, by the larger of two pilot estimates; 0 for white noise."""
    n, total = len(influence), float(influence @ influence)
    if total == 0 or n < 3:
        return 0.0
    lags = min(int(8 * (n / 100) ** (2 / 9)), n // 4)
    correlations = [float(influence[lag:] @ influence[:-lag]) / total for lag in range(1, lags + 1)]
    first = correlations[0] if correlations else 0.0
    carry = min(max(0.0, first + (1 + 3 * first) / n), LARGEST_CARRY)  # corrected for bias
    clear = [(lag, r) for lag, r in enumerate(correlations, 1) if r > 2 / math.sqrt(n)]
    by_lags = sum(2 * lag**2 * r for lag, r in clear) / (1 + sum(2 * r for _, r in clear))
    return max(2 * carry / (1 - carry) ** 2, by_lags)
