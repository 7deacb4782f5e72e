"""Paired differences of nats per unit of weight, and of the perplexities that they give.

    ratio R = sum d / sum w      u_i = (d_i - R w_i) / sum w
    exp(A) - exp(B), A and B     u_i = exp(A) (a_i - A w_i) / sum w - exp(B) (b_i - B w_i) / sum w
      both such ratios           (delta method; a and b stay paired, so their covariance counts)

Units are blocks of text in its order; `serial` has what neighbours share.
"""

import math

import numpy as np

from evaluation.bridge.statistics import Estimate, from_influence, identical
from evaluation.metrics.spread import Floats


def paired_ratio(ours: Floats, theirs: Floats, weights: Floats) -> Estimate:
    """sum(ours - theirs) / sum(weights), e.g. nats over tokens; units in the text's order.

    Units may differ in weight, as blocks do in scored tokens. For bits per byte the weights are
    bytes times ln 2.
    """
    if np.array_equal(ours, theirs):
        return identical(n=len(ours))
    value = float((ours - theirs).sum() / weights.sum())
    influence = ratio_influence(ours - theirs, weights)
    return from_influence(value, influence, serial=True, method="paired ratio, t")


def ratio_influence(amounts: Floats, weights: Floats) -> Floats:
    total = weights.sum()
    influence: Floats = (amounts - amounts.sum() / total * weights) / total
    return influence


def exponential_influence(
    ours: Floats, theirs: Floats, weights: Floats, scale_ours: float, scale_theirs: float
) -> Floats:
    """What each unit contributes to exp(A) - exp(B) where the scales are exp(A) and exp(B)."""
    influence: Floats = scale_ours * ratio_influence(ours, weights)
    influence -= scale_theirs * ratio_influence(theirs, weights)
    return influence


def paired_perplexity(
    ours: Floats,
    theirs: Floats,
    tokens: Floats,
    scales: tuple[float, float] | None = None,
) -> Estimate:
    """ppl_ours - ppl_theirs from the nats and scored tokens of the same blocks.

    `scales` are the perplexities that the blocks contribute to, if not their own.
    """
    if np.array_equal(ours, theirs):
        return identical(n=len(ours))
    own = tuple(math.exp(nats.sum() / tokens.sum()) for nats in (ours, theirs))
    scale_ours, scale_theirs = scales or own
    influence = exponential_influence(ours, theirs, tokens, scale_ours, scale_theirs)
    method = "paired ratio, delta method, t"
    return from_influence(own[0] - own[1], influence, serial=True, method=method)
