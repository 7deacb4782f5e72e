"""Items of two sides, prompt by prompt: the credit that both could be given, by the headline."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from evaluation.results.kinds import CreditItem, Credits
from evaluation.results.read import Results
from evaluation.settings.tiers import TierName


class PairedItem(NamedTuple):
    """An item's credits, in the same order of the same prompts, and its fixed groups of them."""

    tier: TierName
    item: str
    ours: Credits
    theirs: Credits
    groupings: Mapping[str, Mapping[str, str]]


def paired_items(ours: Results, theirs: Results) -> Iterator[PairedItem]:
    """Of two sides that may be compared; an item without credit on both sides is left out."""
    for name, tier in ours.tiers.items():
        for item, mine in tier.items.items():
            other = theirs.tiers[name].items.get(item)
            if not isinstance(mine, CreditItem) or not isinstance(other, CreditItem):
                continue
            headline = tier.tier.headline
            if headline in mine.credits and headline in other.credits:
                left, right = mine.credits[headline], other.credits[headline]
                yield PairedItem(
                    name, item, left.without(right), right.without(left), mine.groupings
                )
