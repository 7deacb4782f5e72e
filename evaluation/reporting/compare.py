"""Two result folders of one suite, paired, as text."""

from collections.abc import Sequence
from pathlib import Path

from evaluation.bridge.deltas import OVERALL, Delta, compare
from evaluation.bridge.results import read_results, tiers_in
from evaluation.errors import BridgeError
from evaluation.reporting.terminal import align


def compare_folders(ours: Path, theirs: Path) -> tuple[str, bool]:
    """A table of the deltas of `ours` against `theirs`, and whether anything is significantly worse.

    Raises:
        BridgeError: a folder has no results, or the two must not be compared.
    """
    tiers = tiers_in(ours)
    if not tiers:
        raise BridgeError(f"{ours}: no tier files; name a folder such as by_checkpoint/step_1000")
    deltas = compare(read_results(ours, tiers), read_results(theirs, tiers))
    shown = [delta for delta in deltas if delta.primary or delta.item == OVERALL]
    rows = [["tier", "item", "metric", "A", "B", "A - B", "95 %", "p", "p (Holm)", "MDE", ""]]
    rows += [_row(delta) for delta in shown]
    text, is_worse = _ending(deltas)
    return f"A = {ours}\nB = {theirs}\n\n{align(rows)}\n\n{text}", is_worse


def _ending(deltas: Sequence[Delta]) -> tuple[str, bool]:
    """Items by the family of tests that Holm's correction is over, overall values each by its own."""
    family = [delta for delta in deltas if delta.primary]
    worse = [delta for delta in family if delta.flag == "worse"]
    overall = {
        delta.tier: None
        for delta in deltas
        if delta.item == OVERALL and not delta.primary and delta.flag == "worse"
    }
    text = f"{len(worse)} of {len(family)} items significantly worse (Holm-corrected)"
    text += f"; the overall value is worse by its own test: {', '.join(overall)}" if overall else ""
    return text, bool(worse or overall)


def _row(delta: Delta) -> list[str]:
    known = delta.estimate
    p_holm = delta.p_holm if delta.primary else None
    return [
        delta.tier,
        delta.item,
        delta.metric.removeprefix("delta_"),
        f"{delta.value:.4f}",
        f"{delta.bridge_value:.4f}",
        f"{known.value:+.4f}",
        "–" if known.low is None else f"[{known.low:+.4f}, {known.high:+.4f}]",
        "–" if known.p is None else f"{known.p:.2g}",
        "–" if p_holm is None else f"{p_holm:.2g}",
        "–" if known.mde is None else f"{known.mde:.4f}",
        delta.flag or "",
    ]
