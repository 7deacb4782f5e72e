"""Deltas by fixed groups of prompts, such as a level or a subject: where a model gained, and where not.

They stand beside the deltas of whole tasks, which verdicts rest on, and are a family of their own:
Holm's correction is over all groups of the step. An item that is in two groupings is tested in both.
"""

from collections.abc import Iterator
from typing import Any

from evaluation.bridge.discordance import paired_rate
from evaluation.bridge.prompts import PairedItem, paired_items
from evaluation.bridge.statistics import ALPHA, Estimate, holm
from evaluation.results.kinds import Credits
from evaluation.results.read import Results


def group_deltas(ours: Results, theirs: Results) -> list[dict[str, Any]]:
    """Rows of `bridge_rows.GroupDelta`, for two sides that may be compared."""
    rows = [row for pair in paired_items(ours, theirs) for row in _rows(pair)]
    adjusted = holm({str(number): row["p"] for number, row in enumerate(rows)})
    return [
        {**row, "p_holm": adjusted[str(number)], "flag": _flag(row["delta"], adjusted[str(number)])}
        for number, row in enumerate(rows)
    ]


def _rows(pair: PairedItem) -> Iterator[dict[str, Any]]:
    for by, groups in pair.groupings.items():
        for group in sorted(set(groups.values())):
            names = {name for name, own in groups.items() if own == group}
            sides = pair.ours.only(names), pair.theirs.only(names)
            if sides[0].ids:
                about = {"tier": pair.tier, "item": pair.item, "by": by, "group": group}
                yield {**about, **_row(*sides)}


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
