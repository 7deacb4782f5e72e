"""Prompts by their pass rate before and after: hard ones gained, easy ones lost."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from evaluation.bridge.prompts import paired_items
from evaluation.metrics.spread import Floats
from evaluation.results.read import Results
from evaluation.settings.tiers import TIERS

BANDS = ("never", "up to 1/3", "up to 2/3", "below 1", "always")
_EDGES = (0.0, 1 / 3, 2 / 3)
_CLOSE = 1e-9  # a rate of 1/3 is a float


def pass_rate_moves(ours: Results, theirs: Results) -> Iterator[dict[str, Any]]:
    """Rows of `bridge_rows.Moves`, for two sides that may be compared."""
    for pair in paired_items(ours, theirs):
        if "moves" in TIERS[pair.tier].figures:
            counts = np.zeros((len(BANDS), len(BANDS)), dtype=int)
            np.add.at(counts, (_bands(pair.theirs.credit), _bands(pair.ours.credit)), 1)
            yield {"tier": pair.tier, "item": pair.item, "bands": BANDS, "counts": counts.tolist()}


def _bands(rates: Floats) -> Any:
    """The index of each rate's band, (n,)."""
    inner = np.searchsorted(np.asarray(_EDGES) + _CLOSE, rates)
    return np.where(rates >= 1 - _CLOSE, len(BANDS) - 1, inner)
