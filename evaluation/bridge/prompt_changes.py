"""Where verified answers gained and lost, prompt by prompt: by fixed groups, and by pass rate.

Deltas by groups, such as a level or a subject, stand next to those of whole tasks, which verdicts
rest on. They are a family of their own: Holm's correction is over all groups of the step. An item that
is in two groupings is tested in both. Pass-rate changes show hard prompts gained and easy ones lost.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from evaluation.bridge.delta import flag_of
from evaluation.bridge.paired_binary import paired_rate
from evaluation.bridge.pairing import Pair, tier_pairs
from evaluation.bridge.statistics import holm
from evaluation.metrics.spread import Floats
from evaluation.results.kinds import CreditItem, Credits
from evaluation.results.read import Results

BANDS = ("never", "up to 1/3", "up to 2/3", "below 1", "always")
_EDGES = (0.0, 1 / 3, 2 / 3)
_CLOSE = 1e-9  # a rate of 1/3 is a float


class _PairedPrompts(NamedTuple):
    """An item's credits by the headline, in the same order of the same prompts."""

    pair: Pair
    name: str
    item: CreditItem
    ours: Credits
    theirs: Credits


def group_deltas(ours: Results, theirs: Results) -> list[dict[str, Any]]:
    """Return rows of `deltas_file.GroupDelta`, for two sides that may be compared."""
    rows = [row for prompts in _paired_prompts(ours, theirs) for row in _group_rows(prompts)]
    adjusted = holm({str(number): row["p"] for number, row in enumerate(rows)})
    return [
        {**row, "p_holm": p, "flag": None if p is None else flag_of(row["delta"], p)}
        for row, p in zip(rows, adjusted.values(), strict=True)
    ]


def _group_rows(prompts: _PairedPrompts) -> Iterator[dict[str, Any]]:
    about = {"tier": prompts.pair.tier.name, "item": prompts.name}
    for by, groups in prompts.item.groupings.items():
        for group in sorted(set(groups.values())):
            names = {name for name, own in groups.items() if own == group}
            left, right = prompts.ours.only(names), prompts.theirs.only(names)
            if left.ids:
                yield {**about, "by": by, "group": group, **_group_row(left, right)}


def _group_row(left: Credits, right: Credits) -> dict[str, Any]:
    estimate = paired_rate(left.credit, right.credit)
    return {
        "prompts": len(left.ids),
        "value": float(left.credit.mean()),
        "bridge_value": float(right.credit.mean()),
        "delta": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "p": estimate.p,
        "mde": estimate.mde,
    }


def pass_rate_changes(ours: Results, theirs: Results) -> Iterator[dict[str, Any]]:
    """Yield rows of `deltas_file.Moves`, for two sides that may be compared."""
    for prompts in _paired_prompts(ours, theirs):
        tier = prompts.pair.tier
        if "moves" in tier.figures:
            counts = np.zeros((len(BANDS), len(BANDS)), dtype=int)
            before, after = (_bands(one.credit) for one in (prompts.theirs, prompts.ours))
            np.add.at(counts, (before, after), 1)
            about = {"tier": tier.name, "item": prompts.name}
            yield {**about, "bands": BANDS, "counts": counts.tolist()}


def _bands(rates: Floats) -> Any:
    """Return the index of each rate's band, (n,)."""
    inner = np.searchsorted(np.asarray(_EDGES) + _CLOSE, rates)
    return np.where(rates >= 1 - _CLOSE, len(BANDS) - 1, inner)


def _paired_prompts(ours: Results, theirs: Results) -> Iterator[_PairedPrompts]:
    """Yield the items that have credit by the headline on both sides."""
    for pair in tier_pairs(ours, theirs):
        headline = pair.tier.headline
        for name, mine, other in pair.items(CreditItem):
            if headline in mine.credits and headline in other.credits:
                left, right = mine.credits[headline], other.credits[headline]
                both = left.without(right), right.without(left)
                yield _PairedPrompts(pair, name, mine, *both)
