"""Items that moved against the bridge, for every step, within what a page can carry.

    items   {tier/item: {id: what the steps share: a text, the bridge's side}}, once each
    steps   {step: [{tier, item, of, gained, lost, shown: [{id, turned, ours}]}]}
    left    steps that found no space on the page

`gained` and `lost` count all items that turned; `shown` has those that moved most, up to a limit
that depends on how many steps there are.
"""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from evaluation.reporting.flips.answers import SHORT, cut, flipped_answers
from evaluation.reporting.flips.blocks import BlockTexts, flipped_blocks
from evaluation.reporting.flips.completions import flipped_completions
from evaluation.reporting.flips.credit import flipped_credit
from evaluation.reporting.flips.moved import Moved
from evaluation.reporting.flips.questions import QuestionTexts, flipped_questions
from evaluation.reporting.pages.page import SpaceLeft
from evaluation.reporting.tables.stage_results import Scored, StageResults
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TierName

MOST, FEWEST = 12, 2
"""Flips of an item shown in each direction: MOST for a few steps, FEWEST for many."""

Page = dict[str, Any]


def stage_flips(found: StageResults, space: SpaceLeft, first: Sequence[int] = ()) -> Page:
    """Flips of all steps that there is room for, those of `first` before the others."""
    page: Page = {"items": {}, "steps": {}, "left": []}
    if found.bridge is None:
        return page
    most = max(FEWEST, min(MOST, 60 // max(1, len(found.steps))))
    finder = _Finder(found.plan, found.bridge, most)
    for step in in_order(sorted(found.steps), first):
        is_full = bool(page["left"])  # what follows would hardly find space either
        moved = () if is_full else finder.moved(found.steps[step])
        if is_full or not _add(page, step, moved, space):
            page["left"].append(step)
    page["left"].sort()
    return page


def in_order(steps: Sequence[int], first: Sequence[int]) -> list[int]:
    """`first`, then the other steps so that those of any beginning are spread over the whole."""
    bits = max(1, len(steps).bit_length())
    spread = sorted(range(len(steps)), key=lambda i: f"{i:0{bits}b}"[::-1])
    known = [step for step in dict.fromkeys(first) if step in steps]
    return [*known, *(steps[i] for i in spread if steps[i] not in known)]


class _Finder:
    """Finds what moved against the bridge, tier by tier, each in the way that its texts are kept."""

    def __init__(self, plan: StagePlan, bridge: Scored, most: int) -> None:
        self._bridge, self._most, self._probes = bridge, most, plan.suite.probes
        self._questions, self._blocks = QuestionTexts(plan), BlockTexts(plan)
        self._bridge_tier = functools.cache(bridge.tier)

    def moved(self, scored: Scored) -> Iterable[Moved]:
        for name in scored.results.tiers:
            if name in self._bridge.results.tiers:
                yield from FINDERS.get(name, _Finder.plain)(self, name, scored)

    def blocks(self, name: TierName, scored: Scored) -> Iterable[Moved]:
        sides = scored.tier(name), self._bridge_tier(name)
        return flipped_blocks(*sides, self._blocks, max(1, self._most // 3))

    def questions(self, name: TierName, scored: Scored) -> Iterable[Moved]:
        sides = scored.results.tiers[name], self._bridge.results.tiers[name]
        return flipped_questions(*sides, self._questions, self._most)

    def answers(self, name: TierName, scored: Scored) -> Iterable[Moved]:
        return flipped_answers(scored.tier(name), self._bridge_tier(name), self._probes)

    def completions(self, name: TierName, scored: Scored) -> Iterable[Moved]:
        return flipped_completions(scored.tier(name), self._bridge_tier(name), self._most)

    def plain(self, name: TierName, scored: Scored) -> Iterable[Moved]:
        """Of a tier whose texts nobody told how to find."""
        sides = scored.tier(name), self._bridge_tier(name)
        if sides[0].tier.kind == "nats":
            return flipped_blocks(*sides, None, max(1, self._most // 3))
        return flipped_credit(*sides, self._most)


FINDERS: Mapping[TierName, Callable[[_Finder, TierName, Scored], Iterable[Moved]]] = {
    "tier2": _Finder.blocks,
    "tier3": _Finder.questions,
    "tier4": _Finder.answers,
    "tier5": _Finder.completions,
}
"""Tiers that have texts to show; of others, how each unit's score moved is all there is."""


def _add(page: Page, step: int, moved: Iterable[Moved], space: SpaceLeft) -> bool:
    """Puts a step's flips on the page, their texts cut if need be; False if there is no room."""
    rows: list[dict[str, Any]] = []
    added: dict[str, Any] = {}
    for one in moved:
        name = f"{one.tier}/{one.item}"
        known = page["items"].get(name, {})
        added[name] = {flip.id: flip.shared for flip in one.shown if flip.id not in known}
        rows.append(
            {
                "tier": one.tier,
                "shape": one.shape,
                "item": one.item,
                "of": one.of,
                "gained": one.gained,
                "lost": one.lost,
                "label": one.label,
                "shown": [{"id": f.id, "turned": f.turned, "ours": f.ours} for f in one.shown],
            }
        )
    if not space.take([rows, added]):
        rows, added = _cut([rows, added])
        if not space.take([rows, added]):
            return False
    for name, new in added.items():
        page["items"].setdefault(name, {}).update(new)
    page["steps"][str(step)] = rows
    return True


def _cut(content: Any) -> Any:
    """The same with long texts cut."""
    if isinstance(content, str):
        return cut(content, most=SHORT)
    if isinstance(content, list | tuple):
        return [_cut(one) for one in content]
    return {k: _cut(v) for k, v in content.items()} if isinstance(content, dict) else content
