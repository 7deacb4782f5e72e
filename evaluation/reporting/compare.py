"""Two result folders of one suite, paired, as text."""

from pathlib import Path

from evaluation.bridge.deltas import OVERALL, Delta, compare
from evaluation.bridge.pairing import check_comparable
from evaluation.errors import ResultsError
from evaluation.reporting.terminal import align
from evaluation.results.read import read_results, tiers_in


def compare_folders(ours: Path, theirs: Path) -> tuple[str, bool]:
    """A table of the deltas of `ours` against `theirs`, and whether any item is significantly worse.

    Raises:
        ResultsError: a folder has no results, or one that is damaged.
        BridgeError: the two must not be compared.
    """
    tiers = tiers_in(ours)
    if not tiers:
        raise ResultsError(f"{ours}: no tier files; name a folder such as by_checkpoint/step_1000")
    sides = read_results(ours, tiers), read_results(theirs, tiers)
    deltas = compare(*sides)
    shown = [delta for delta in deltas if delta.primary or delta.item == OVERALL]
    rows = [["tier", "item", "metric", "A", "B", "A - B", "95 %", "p (Holm)", "MDE", ""]]
    rows += [_row(delta) for delta in shown]
    worse = [delta for delta in shown if delta.flag == "worse"]
    ending = f"{len(worse)} significantly worse" if worse else "nothing is significantly worse"
    notes = "".join(f"\n{note}" for note in check_comparable(*sides))
    return f"A = {ours}\nB = {theirs}\n\n{align(rows)}\n\n{ending}{notes}", bool(worse)


def _row(delta: Delta) -> list[str]:
    known = delta.estimate
    p = delta.p_holm if delta.primary else known.p
    return [
        delta.tier,
        delta.item,
        delta.metric.removeprefix("delta_"),
        f"{delta.value:.4f}",
        f"{delta.bridge_value:.4f}",
        f"{known.value:+.4f}",
        "–" if known.low is None else f"[{known.low:+.4f}, {known.high:+.4f}]",
        "–" if p is None else f"{p:.2g}",
        "–" if known.mde is None else f"{known.mde:.4f}",
        delta.flag or "",
    ]
