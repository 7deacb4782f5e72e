"""Items that moved against the bridge, for every step, within what a page can carry.

    items   {tier/item: {id: what the steps share: a text, the bridge's side}}, once each
    steps   {step: [{tier, item, of, gained, lost, shown: [{id, turned, ours}]}]}
    left    steps that found no space on the page

`gained` and `lost` count all items that turned; `shown` has those that moved most, up to a limit
that depends on how many steps there are.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from evaluation.bridge.results import Results
from evaluation.reporting.flips.answers import flipped_answers
from evaluation.reporting.flips.blocks import BlockTexts, flipped_blocks
from evaluation.reporting.flips.moved import Moved
from evaluation.reporting.flips.questions import QuestionTexts, flipped_questions
from evaluation.reporting.pages.page import SpaceLeft
from evaluation.reporting.tables.stage_results import StageResults

MOST, FEWEST = 12, 2
"""Flips of an item shown in each direction: MOST for a few steps, FEWEST for many."""

Page = dict[str, Any]


def stage_flips(found: StageResults, space: SpaceLeft, first: Sequence[int] = ()) -> Page:
    """Flips of all steps that there is room for, those of `first` before the others."""
    page: Page = {"items": {}, "steps": {}, "left": []}
    if found.bridge is None:
        return page
    bridge = found.bridge.tables()
    most = max(FEWEST, min(MOST, 60 // max(1, len(found.steps))))
    texts = QuestionTexts(found.plan), BlockTexts(found.plan)
    for step in in_order(sorted(found.steps), first):
        is_full = bool(page["left"])  # what follows would hardly find space either
        moved = () if is_full else _moved(found.steps[step].tables(), bridge, texts, most)
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


def _moved(
    ours: Results, bridge: Results, texts: tuple[QuestionTexts, BlockTexts], most: int
) -> Iterable[Moved]:
    yield from flipped_blocks(ours, bridge, texts[1], max(1, most // 3))
    yield from flipped_questions(ours, bridge, texts[0], most)
    yield from flipped_answers(ours, bridge)


def _add(page: Page, step: int, moved: Iterable[Moved], space: SpaceLeft) -> bool:
    """Puts a step's flips on the page; False if there is no room for them."""
    rows, added = [], {}
    for one in moved:
        name = f"{one.tier}/{one.item}"
        known = page["items"].get(name, {})
        added[name] = {flip.id: flip.shared for flip in one.shown if flip.id not in known}
        rows.append(
            {
                "tier": one.tier,
                "item": one.item,
                "of": one.of,
                "gained": one.gained,
                "lost": one.lost,
                "label": one.label,
                "shown": [{"id": f.id, "turned": f.turned, "ours": f.ours} for f in one.shown],
            }
        )
    if not space.take([rows, added]):
        return False
    for name, new in added.items():
        page["items"].setdefault(name, {}).update(new)
    page["steps"][str(step)] = rows
    return True
