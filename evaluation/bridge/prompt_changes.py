"""Where verified answers gained and lost, prompt by prompt: by fixed groups, and by pass rate.

Deltas by groups, such as a level or a subject, stand next to those of whole tasks, which verdicts
rest on. They are a family of their own: Holm's correction is over all groups of the step. An item that
is in two groupings is tested in both. Pass-rate changes show hard prompts gained and easy ones lost.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from evaluation.bridge.delta import change_columns, flag_of
from evaluation.bridge.paired_binary import paired_rate
from evaluation.bridge.pairing import Pair, tier_pairs
from evaluation.bridge.statistics import holm
from evaluation.metrics.spread import Floats
from evaluation.results.kinds import CreditItem
from evaluation.results.read import Results

BANDS = ("never", "up to 1/3", "up to 2/3", "below 1", "always")
_EDGES = (0.0, 1 / 3, 2 / 3)
_CLOSE = 1e-9  # a rate of 1/3 is a float


def group_deltas(ours: Results, theirs: Results) -> list[dict[str, Any]]:
    """Return rows of `deltas_file.GroupDelta`, for two sides that may be compared."""
    rows = [row for pair in tier_pairs(ours, theirs) for row in _group_rows(pair)]
    adjusted = holm({str(number): row["p"] for number, row in enumerate(rows)})
    return [
        {**row, "p_holm": p, "flag": None if p is None else flag_of(row["delta"], p)}
        for row, p in zip(rows, adjusted.values(), strict=True)
    ]


def _group_rows(pair: Pair) -> Iterator[dict[str, Any]]:
    groupings = {name: item.groupings for name, item, _ in pair.both(CreditItem)}
    for item, ours, theirs in pair.credits():
        for by, groups in groupings[item].items():
            for group in sorted(set(groups.values())):
                names = {name for name, own in groups.items() if own == group}
                left, right = ours.only(names), theirs.only(names)
                if left.ids:
                    about = {"tier": pair.tier.name, "item": item, "by": by, "group": group}
                    known = paired_rate(left.credit, right.credit)
                    values = float(left.credit.mean()), float(right.credit.mean())
                    tested = {"prompts": len(left.ids), "p": known.p, "mde": known.mde}
                    yield {**about, **change_columns(values, known), **tested}


def pass_rate_changes(ours: Results, theirs: Results) -> Iterator[dict[str, Any]]:
    """Yield rows of `deltas_file.Moves`, for two sides that may be compared."""
    for pair in tier_pairs(ours, theirs):
        for item, mine, other in pair.credits() if "moves" in pair.tier.figures else ():
            counts = np.zeros((len(BANDS), len(BANDS)), dtype=int)
            np.add.at(counts, (_bands(other.credit), _bands(mine.credit)), 1)
            about = {"tier": pair.tier.name, "item": item}
            yield {**about, "bands": BANDS, "counts": counts.tolist()}


def _bands(rates: Floats) -> Any:
    """Return the index of each rate's band, (n,)."""
    inner = np.searchsorted(np.asarray(_EDGES) + _CLOSE, rates)
    return np.where(rates >= 1 - _CLOSE, len(BANDS) - 1, inner)
