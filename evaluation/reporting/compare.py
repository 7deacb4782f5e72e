"""Two result folders of one suite, paired, as text."""

from collections.abc import Sequence
from pathlib import Path

from evaluation.bridge.delta import OVERALL, Delta
from evaluation.bridge.deltas import compare
from evaluation.bridge.pairing import check_comparable
from evaluation.errors import ResultsError
from evaluation.reporting.terminal import align
from evaluation.results.read import read_results, tiers_in
from evaluation.settings.tiers import TIERS, TierName


def compare_folders(ours: Path, theirs: Path) -> tuple[str, bool | None]:
    """A table of the deltas of `ours` against `theirs`, and whether anything is significantly worse.

    None where nothing could be tested, as without per-item scores.

    Raises:
        ResultsError: a folder has no results or lacks a tier of the other's, or one is damaged.
        BridgeError: the two must not be compared.
    """
    tiers = _shared_tiers(ours, theirs)
    sides = read_results(ours, tiers), read_results(theirs, tiers)
    deltas = compare(*sides)
    shown = [delta for delta in deltas if delta.primary or delta.item == OVERALL]
    rows = [["tier", "item", "metric", "A", "B", "A - B", "95 %", "p", "p (Holm)", "MDE", ""]]
    rows += [delta_cells(delta) for delta in shown]
    text, is_worse = ending(deltas)
    is_tested = any(delta.estimate.p is not None for delta in shown)
    notes = "".join(f"\n{note}" for note in check_comparable(*sides))
    text = f"A = {ours}\nB = {theirs}\n\n{align(rows)}\n\n{text}{notes}"
    return text, is_worse if is_tested else None


def ending(deltas: Sequence[Delta]) -> tuple[str, bool]:
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


def _shared_tiers(ours: Path, theirs: Path) -> tuple[TierName, ...]:
    """The tiers that both folders have: a tier of one side alone would go without a word."""
    for folder in (ours, theirs):
        if not folder.is_dir():
            kind = "is a file" if folder.exists() else "no such folder"
            raise ResultsError(f"{folder}: {kind}; name a folder such as by_checkpoint/step_1000")
    if ours.samefile(theirs):
        raise ResultsError(f"{ours} and {theirs} are one folder; name two different ones")
    found = {folder: tiers_in(folder) for folder in (ours, theirs)}
    for folder, other in ((ours, theirs), (theirs, ours)):
        if not found[folder]:
            raise ResultsError(
                f"{folder}: no tier files; name a folder such as by_checkpoint/step_1000"
            )
        lacking = [tier for tier in found[other] if tier not in found[folder]]
        if lacking:
            raise ResultsError(
                f"{folder / TIERS[lacking[0]].summary_file}: no such file, though {other} has one; "
                "score that tier on both sides, or on none"
            )
    return found[ours]


def delta_cells(delta: Delta) -> list[str]:
    """A delta as a row of text."""
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
