"""A model that was scored once, such as a public one, as a reference line of curves.

It is named under `runs:` like a run, by the folder of results of that one checkpoint. What it shares
with a run is looked at tier by tier, by comparing the two as two checkpoints are: what must not be
compared gets no line.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from evaluation.bridge.delta import OVERALL
from evaluation.bridge.deltas import FREE_OF_TOKENS, compare
from evaluation.bridge.pairing import Pair
from evaluation.errors import EvaluationError
from evaluation.results.read import Results, TierResults, read_folder
from evaluation.settings.tiers import TierName


@dataclass(frozen=True, kw_only=True)
class SharedResults:
    """What a reference has in common with a run: results of the same items, and what has no line.

    `across` are tiers in which the tokenizers differ, `partial` those of which not all items are common.
    """

    results: Results
    across: frozenset[TierName]
    partial: frozenset[TierName]
    notes: tuple[str, ...]

    def has_line(self, tier: TierName, item: str, unit: str) -> bool:
        """Return whether a measure means the same on both sides.

        Args:
            tier: Tier of the measure.
            item: Item of the measure, or `OVERALL`.
            unit: Unit of the measure, of `tiers.Metric`.

        Returns:
            False for means over other items, and for units that depend on the tokenizer where it
            differs.
        """
        if item == OVERALL and tier in self.partial:
            return False
        return tier not in self.across or unit in FREE_OF_TOKENS


def shared_results(name: str, folder: Path, ours: Results) -> SharedResults:
    """Return what a reference has in common with a run.

    Args:
        name: Name of the reference, for notes.
        folder: Folder of the reference's results.
        ours: Results of a checkpoint of the run.

    Returns:
        Results of the same items; tiers that must not be compared are left out, with a note.

    Raises:
        ResultsError: When the reference's results are missing or damaged.
    """
    theirs = read_folder(folder)
    tiers: dict[TierName, TierResults] = {}
    across: set[TierName] = set()
    partial: set[TierName] = set()
    notes = []
    for tier in (one for one in ours.tiers if one in theirs.tiers):
        pair = Pair(ours.tiers[tier], theirs.tiers[tier])
        if not pair.tier.rates:  # prompts of rates stay together
            pair = pair.over(name for name in pair.ours.items if name in pair.theirs.items)
            if not pair.ours.items:
                continue
        differ = pair.ours.file.tokenizer.identity != pair.theirs.file.tokenizer.identity
        try:
            compare(*pair.results(), across_tokenizers=differ)
        except EvaluationError as error:
            notes.append(f"{name} has no line in {tier}: {error}")
            continue
        tiers[tier] = pair.theirs
        across |= {tier} if differ else set()
        partial |= {tier} if set(pair.ours.items) != set(ours.tiers[tier].items) else set()
    return SharedResults(
        results=replace(theirs, tiers=tiers),
        across=frozenset(across),
        partial=frozenset(partial),
        notes=tuple(notes),
    )
