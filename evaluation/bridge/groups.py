"""Deltas by fixed groups of prompts, such as a level or a subject: where a model gained, and where not.

They stand beside the deltas of whole tasks, which verdicts rest on, and are a family of their own:
Holm's correction is over all groups of the step. An item that is in two groupings is tested in both.
"""

from collections.abc import Iterator
from typing import Any

from evaluation.bridge.discordance import paired_rate
from evaluation.bridge.statistics import ALPHA, Estimate, holm
from evaluation.results.kinds import CreditItem, Credits
from evaluation.results.read import Results


def group_deltas(ours: Results, theirs: Results) -> list[dict[str, Any]]:
    """Rows of `bridge_files.GroupDelta`, for two sides that may be compared."""
    rows = [row for mine, other, about in _items(ours, theirs) for row in _rows(mine, other, about)]
    adjusted = holm({str(number): row["p"] for number, row in enumerate(rows)})
    return [
        {**row, "p_holm": adjusted[str(number)], "flag": _flag(row["delta"], adjusted[str(number)])}
        for number, row in enumerate(rows)
    ]


def _items(
    ours: Results, theirs: Results
) -> Iterator[tuple[CreditItem, CreditItem, dict[str, str]]]:
    for name, tier in ours.tiers.items():
        for item, mine in tier.items.items():
            other = theirs.tiers[name].items.get(item)
            if isinstance(mine, CreditItem) and isinstance(other, CreditItem) and mine.credits:
                yield mine, other, {"tier": name, "item": item}


def _rows(mine: CreditItem, other: CreditItem, about: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Of the headline, which is the first metric of an item."""
    headline = next(iter(mine.credits))
    if headline not in other.credits:
        return
    left, right = mine.credits[headline], other.credits[headline]
    left, right = left.without(right), right.without(left)
    for by, groups in mine.groupings.items():
        for group in sorted(set(groups.values())):
            names = {name for name, own in groups.items() if own == group}
            sides = left.only(names), right.only(names)
            if sides[0].ids:
                yield {**about, "by": by, "group": group, **_row(*sides)}


def _row(left: Credits, right: Credits) -> dict[str, Any]:
    estimate: Estimate = paired_rate(left.credit, right.credit)
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


def _flag(delta: float, p: float | None) -> str | None:
    if p is None:
        return None
    return "unclear" if p >= ALPHA else "better" if delta > 0 else "worse"
