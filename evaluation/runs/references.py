"""A model that was scored once, such as a public one, as a level that curves can be seen against.

It is named under `runs:` like a run, by the folder of results of that one checkpoint. What it shares
with a run is looked at tier by tier, by comparing the two as two checkpoints are: what must not be
compared gets no line.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from evaluation.bridge.delta import OVERALL
from evaluation.bridge.deltas import FREE_OF_TOKENS, compare
from evaluation.errors import EvaluationError
from evaluation.results.read import Results, TierResults, read_results, tiers_in
from evaluation.settings.tiers import TierName


@dataclass(frozen=True, kw_only=True)
class Shared:
    """What a reference has in common with a run: results of the same items, and what has no line.

    `across` are tiers in which the tokenizers differ, `partial` those of which not all items are common.
    """

    results: Results
    across: frozenset[TierName]
    partial: frozenset[TierName]
    notes: tuple[str, ...]

    def has_line(self, tier: TierName, item: str, unit: str) -> bool:
        """Whether a measure of this unit means the same on both sides."""
        if item == OVERALL and tier in self.partial:
            return False
        return tier not in self.across or unit in FREE_OF_TOKENS


def shared(name: str, folder: Path, ours: Results) -> Shared:
    """Return what a reference shares with `ours`; raise ResultsError if it is damaged."""
    theirs = read_results(folder, tiers_in(folder))
    tiers: dict[TierName, TierResults] = {}
    across: set[TierName] = set()
    partial: set[TierName] = set()
    notes = []
    for tier in (one for one in ours.tiers if one in theirs.tiers):
        mine, other = _common(ours.tiers[tier], theirs.tiers[tier])
        if not other.items and not other.tier.rates:
            continue
        differ = mine.file.tokenizer.identity != other.file.tokenizer.identity
        try:
            compare(_only(ours, mine), _only(theirs, other), across_tokenizers=differ)
        except EvaluationError as error:
            notes.append(f"{name} has no line in {tier}: {error}")
            continue
        tiers[tier] = other
        across |= {tier} if differ else set()
        partial |= {tier} if set(mine.items) != set(ours.tiers[tier].items) else set()
    return Shared(
        results=replace(theirs, tiers=tiers),
        across=frozenset(across),
        partial=frozenset(partial),
        notes=tuple(notes),
    )


def _only(results: Results, tier: TierResults) -> Results:
    return replace(results, tiers={tier.tier.name: tier})


def _common(ours: TierResults, theirs: TierResults) -> tuple[TierResults, TierResults]:
    """Return a tier of both with the items that both have; prompts of rates stay together."""
    if ours.tier.rates:
        return ours, theirs
    names = [name for name in ours.items if name in theirs.items]
    return _with(ours, names), _with(theirs, names)


def _with(tier: TierResults, names: list[str]) -> TierResults:
    return replace(tier, items={name: tier.items[name] for name in names})
