"""Items without files, from the numbers of their units."""

from collections.abc import Sequence

import numpy as np

from evaluation.metrics.layout import Layout
from evaluation.metrics.ratios import Ratio, ratio_of
from evaluation.metrics.variance import Floats
from evaluation.results.read import Item
from evaluation.results.tier_files import ItemEntry
from evaluation.results.units import Units
from evaluation.settings.tiers import TIERS

ENTRY = ItemEntry()


def slice_of(**sums: Floats) -> Item:
    """A slice of blocks with these sums by column."""
    size = len(sums["nats"])
    ratios = {metric.name: ratio_of(metric, sums) for metric in TIERS["tier2"].metrics}
    measured = {name: ratio for name, ratio in ratios.items() if ratio is not None}
    layout = Layout(size, is_text=True)
    units = Units(ids=[*range(size)], layout=layout, measured=measured, sums=sums)
    values = {name: ratio.value for name, ratio in measured.items()}
    return Item(group=None, values=values, same={}, entry=ENTRY, units=units)


def item_of(ids: Sequence[str], **measured: Sequence[float]) -> Item:
    """A task of independent questions with these numbers by metric."""
    ratios = {name: Ratio(np.array(values, np.float64)) for name, values in measured.items()}
    units = Units(ids=[*ids], layout=Layout(len(ids)), measured=ratios)
    return Item(group=None, values={}, same={}, entry=ENTRY, units=units)
