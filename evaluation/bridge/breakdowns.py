"""Breakdowns of deltas by position and group, which enter no verdict.

by position     the loss at the positions of a slice: how much context a checkpoint makes use of
by group        credits in fixed groups of questions or prompts, such as a level or a subject. Those of a
                tier are a family of their own: Holm's correction is over all of them
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from evaluation.bridge.choice import holm
from evaluation.bridge.delta import change_columns, flag_of
from evaluation.bridge.differences import Paired
from evaluation.bridge.estimate import Estimate
from evaluation.bridge.paired import estimate_of, paired_of
from evaluation.bridge.pairing import AGAIN, Pair, tier_pairs
from evaluation.errors import BridgeError
from evaluation.metrics.layout import Layout
from evaluation.metrics.positions import bins_of
from evaluation.metrics.variance import Floats
from evaluation.results.read import Results
from evaluation.results.units import Units


class BinValue(NamedTuple):
    """Nats per token at the positions of a bin."""

    first: int
    last: int
    estimate: Estimate


def position_values(units: Units | None, length: int) -> list[BinValue]:
    """Return the loss in each bin of positions; none where only one bin has tokens, or none was stored."""
    if units is None or units.positions is None:
        return []
    return [
        BinValue(values.first, values.last, _of_blocks(values.nats, values.tokens))
        for values in bins_of(units.positions, length)
    ]


def _of_blocks(amounts: Floats, weights: Floats) -> Estimate:
    groups = Layout(len(amounts), is_text=True).groups
    return estimate_of(Paired(amounts=amounts, weights=weights, groups=groups))


class Breakdowns(NamedTuple):
    """Breakdowns of one checkpoint's results against another's, which `check_comparable` accepts."""

    ours: Results
    theirs: Results

    @property
    def by_position(self) -> list[dict[str, Any]]:
        """Rows of deltas by position, in nats per token; BridgeError where blocks differ."""
        return [row for pair in tier_pairs(*self) for row in _position_rows(pair)]

    @property
    def by_group(self) -> list[dict[str, Any]]:
        """Rows of deltas by group, corrected by Holm's method over those of each tier."""
        return [row for pair in tier_pairs(*self) for row in _corrected([*_group_rows(pair)])]


def _corrected(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    adjusted = holm([row["p"] for row in rows])
    return [
        {**row, "p_holm": p, "flag": None if p is None else flag_of(row["delta"], p)}
        for row, p in zip(rows, adjusted, strict=True)
    ]


def _position_rows(pair: Pair) -> Iterator[dict[str, Any]]:
    length = pair.ours.file.sequence_length
    for name, mine, other in pair.both:
        if mine.units is None or other.units is None:
            continue
        left, right = mine.units.positions, other.units.positions
        if left is None or right is None:
            continue
        if not np.array_equal(left.tokens, right.tokens):
            raise BridgeError(
                f"{pair.tier.unit} of {name!r}: {pair.ours.folder} and {pair.theirs.folder} scored "
                f"different numbers of tokens at the same positions; {AGAIN}"
            )
        for first, second in zip(bins_of(left, length), bins_of(right, length), strict=True):
            estimate = _of_blocks(first.nats - second.nats, first.tokens)
            tokens = float(first.tokens.sum())
            values = float(first.nats.sum()) / tokens, float(second.nats.sum()) / tokens
            at = {"first": first.first, "last": first.last, "tokens": int(tokens)}
            about = {"tier": pair.tier.name, "item": name, **at, **change_columns(values, estimate)}
            yield {**about, "n": estimate.n, "note": estimate.note}


def _group_rows(pair: Pair) -> Iterator[dict[str, Any]]:
    head = pair.tier.head
    for name, mine, other in pair.both:
        grouping = None if mine.units is None else mine.units.layout.groups
        paired = None if grouping is None else paired_of(mine, other, head, grouping)
        if paired is None or mine.units is None:
            continue
        sides = [item.measured[head.name].amounts for item in (mine, other)]
        for by, groups in mine.groupings.items():
            members = np.array([groups.get(unit) for unit in mine.units.ids], dtype=object)
            for group in sorted(set(groups.values())):
                amounts = np.where(members == group, paired.amounts, np.nan)
                chosen = np.isfinite(amounts)
                if not chosen.any():
                    continue
                rate = estimate_of(replace(paired, amounts=amounts))
                about = {"tier": pair.tier.name, "item": name, "by": by, "group": group}
                values = float(sides[0][chosen].mean()), float(sides[1][chosen].mean())
                tested = {"prompts": rate.n, "p": rate.p, "mde": rate.mde}
                yield {**about, **change_columns(values, rate), **tested}
