"""Nats per token, perplexity and bits per byte, which all follow from the nats of blocks."""

import math

from evaluation.metrics.variance import Floats
from evaluation.settings.metric import LARGEST


def denominators(metric: str, tokens: Floats, text: Floats) -> Floats:
    """Return what a slice's nats are divided by, for nats per token (and perplexity) or bits per byte.

    Args:
        tokens: Scored tokens of each block.
        text: UTF-8 bytes of each block.
    """
    return text * math.log(2) if metric == "bits_per_byte" else tokens


def perplexity(nats_per_token: float | None) -> float | None:
    """Return exp of a loss or of its bound; None where there is none, or no float can hold it."""
    return None if nats_per_token is None or nats_per_token > LARGEST else math.exp(nats_per_token)
