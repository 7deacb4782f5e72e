"""Weighted means of several estimates: over tasks, groups, tiers and slices.

A mean's influence on a source row is the weighted sum of its items' influences on that row, so that a
question that several tasks ask counts once, not as several independent questions:

    T_kc     sum of item k's influences on the units of the dependent group c, (sum over c T_kc^2) = SE_k^2
    Var      sum over c (sum over k w_k T_kc)^2 = sum over k, l w_k w_l rho_kl SE_k SE_l

Where no two items share a source row, this is sum (w_k SE_k)^2. Degrees of freedom are Satterthwaite's
(Biometrics Bulletin 2, 1946); two variances of items with correlation rho have the correlation rho^2.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from evaluation.bridge.estimate import Estimate, by_t, identical, unknown
from evaluation.metrics.layout import Layout, shared_groups
from evaluation.metrics.variance import Floats


def macro_mean(
    parts: Mapping[str, Estimate], weights: Mapping[str, float] | None = None
) -> Estimate:
    """Return the weighted mean of estimates; without interval if a part has none. One part is its own mean.

    Args:
        weights: Weight of each part, which add up to 1; None weighs all parts equally.
    """
    weights = weights or dict.fromkeys(parts, 1 / len(parts))
    return replace(_macro_mean(parts, weights), weights=weights)


def _macro_mean(parts: Mapping[str, Estimate], weights: Mapping[str, float]) -> Estimate:
    estimates = list(parts.values())
    if len(estimates) == 1:
        return replace(estimates[0], parts=parts, shares=dict.fromkeys(parts, 1.0))
    value = math.fsum(weights[name] * part.value for name, part in parts.items())
    n, units = sum(part.n for part in estimates), sum(part.units for part in estimates)
    lacking = next((name for name, part in parts.items() if part.se is None), None)
    if lacking is not None:
        note = (parts[lacking].note or "no interval").removeprefix("no interval: ")
        return unknown(value, n=n, units=units, note=f"no interval: {lacking}: {note}")
    spread = np.array([weights[name] * (part.se or 0.0) for name, part in parts.items()])
    if not spread.any():
        return replace(identical(n=n), parts=parts)
    joint = joint_influences(estimates)
    correlation = np.eye(len(estimates)) if joint is None else _correlation(joint)
    rows = spread * (correlation @ spread)
    variance = max(float(rows.sum()), 1e-9 * float(spread @ spread))
    se = math.sqrt(variance)
    whole = Estimate(value=value, n=n, units=units, method=f"mean of {len(parts)}", se=se)
    return by_t(
        replace(
            whole,
            df=_satterthwaite(rows, correlation, estimates),
            skew=_skewness(estimates, spread, joint) / se**3,
            limit=estimates[0].limit if len({part.limit for part in estimates}) == 1 else None,
            parts=parts,
            shares=dict(zip(parts, (rows / variance).tolist(), strict=True)),
        )
    )


def joint_influences(estimates: Sequence[Estimate]) -> Floats | None:
    """Return each item's influences on the dependent groups that the items share, scaled to unit length.

    Returns:
        Influences, (items, groups); None where no two items share a source row. An item of which no
        unit differs has the same influence on each of its units.
    """
    variances = [estimate.variance for estimate in estimates if estimate.variance is not None]
    layouts = [leaf.layout or Layout(len(leaf.independent)) for leaf in variances]
    if len(variances) < len(estimates) or not any(layout.names for layout in layouts):
        return None
    labels = shared_groups(tuple(layouts))
    if labels is None:
        return None
    groups = 1 + max(int(label.max()) for label in labels)
    rows = np.zeros((len(labels), groups))
    for row, label, variance in zip(rows, labels, variances, strict=True):
        has_influence = variance.independent.any()
        row[:] = np.bincount(label, variance.independent if has_influence else None, groups)
        length = math.sqrt(float(row @ row))
        row /= length if length > 0 else 1.0
    return rows


def _correlation(joint: Floats) -> Floats:
    correlation: Floats = joint @ joint.T
    np.fill_diagonal(correlation, 1.0)
    return correlation


def _satterthwaite(
    rows: Floats, correlation: Floats, estimates: Sequence[Estimate]
) -> float | None:
    """Return the degrees of freedom of a mean; those of an exact part are one less than its units."""
    dfs = np.array([max(1.0, part.units - 1 if part.df is None else part.df) for part in estimates])
    errors = rows / np.sqrt(dfs)
    total = float(errors @ correlation**2 @ errors)
    return max(1.0, float(rows.sum()) ** 2 / total) if total > 0 else None


def _skewness(estimates: Sequence[Estimate], spread: Floats, joint: Floats | None) -> float:
    """Return the third cumulant of the mean.

    Parts by the exact test have none: a handful of changed items says nothing of skewness, and the interval
    from which their error follows is one of such items.
    """
    own = spread * [part.counts is None for part in estimates]
    third = sum(part.skew * one**3 for part, one in zip(estimates, own, strict=True))
    if joint is None:
        return float(third)
    scaled = own[:, None] * joint
    return float(third + (scaled.sum(axis=0) ** 3).sum() - (scaled**3).sum())
