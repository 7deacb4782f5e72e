"""Items that flipped against the bridge, for every step, as far as a page has space for them.

    items   {tier/item: {id: what the steps share: a text, the bridge's side}}, once each
    steps   {step: [{tier, item, of, gained, lost, shown: [{id, change, ours}]}]}
    left    steps that found no space on the page

`gained` and `lost` count all items that flipped; `shown` has those that changed most, up to a limit
that depends on how many steps there are.
"""

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from evaluation.bridge.pairing import Pair
from evaluation.errors import EvaluationError
from evaluation.reporting.flips.answers import flipped_completions, flipped_probes
from evaluation.reporting.flips.blocks import BlockTexts, flipped_blocks
from evaluation.reporting.flips.items import Flip, ItemFlips, cut, largest, rounded
from evaluation.reporting.flips.questions import QuestionTexts, flipped_questions
from evaluation.reporting.pages.page import SpaceLeft
from evaluation.reporting.tables.stage_results import Scored, StageResults
from evaluation.settings.plan import StagePlan

MOST, FEWEST = 12, 2
"""Flips of an item shown in each direction: MOST for a few steps, FEWEST for many."""

SHORT = 1500
"""Characters of a text that are shown where a page has no space for whole texts."""

Page = dict[str, Any]


def stage_flips(stage: StageResults, space: SpaceLeft, first: Sequence[int] = ()) -> Page:
    """Return `items`, `steps` and `left`, as above; all empty without a bridge.

    Args:
        space: Bytes that the page may still grow by; those that the flips need are taken from it.
        first: Steps that get space before the others.
    """
    page: Page = {"items": {}, "steps": {}, "left": []}
    if stage.bridge is None:
        return page
    most = max(FEWEST, min(MOST, 60 // max(1, len(stage.steps))))
    flips_of = _finder(stage.plan, stage.bridge, most)
    for step in in_order(sorted(stage.steps), first):
        is_full = bool(page["left"])  # later steps would hardly find space either
        if is_full or not _add(page, step, flips_of(stage.steps[step]), space):
            page["left"].append(step)
    page["left"].sort()
    return page


def in_order(steps: Sequence[int], first: Sequence[int]) -> list[int]:
    """Return ascending steps in the order in which they get space on a page.

    `first` come first; any first few of the others are spread over all steps.
    """
    bits = max(1, len(steps).bit_length())
    spread = sorted(range(len(steps)), key=lambda i: f"{i:0{bits}b}"[::-1])
    leading = [step for step in dict.fromkeys(first) if step in steps]
    return [*leading, *(steps[i] for i in spread if steps[i] not in leading)]


def _finder(plan: StagePlan, bridge: Scored, most: int) -> Callable[[Scored], Iterator[ItemFlips]]:
    """Return a function that yields a checkpoint's flips, as each tier stores its texts differently."""
    texts, questions = BlockTexts(plan), QuestionTexts(plan)
    blocks, of_bridge = max(1, most // 3), functools.cache(bridge.tier)

    bridge_candidates = functools.cache(lambda: of_bridge("tier3").details())

    def of_questions(pair: Pair) -> Iterator[ItemFlips]:
        try:
            tables = pair.ours.details(), bridge_candidates()
            yield from [*flipped_questions(pair, tables, questions, most)]
        except EvaluationError as error:  # the units are whole, so that gains can be shown
            yield from _flipped_credit(pair, most, error)

    def of_tier(pair: Pair) -> Iterator[ItemFlips]:
        match pair.tier.name:
            case "tier2":
                return flipped_blocks(pair, texts, blocks)
            case "tier3":
                return of_questions(pair)
            case "tier4":
                return flipped_probes(pair, plan.suite.probes)
            case "tier5":
                return flipped_completions(pair, most)
        # other tiers have no texts to show, only the change of each unit's score
        if pair.tier.kind == "nats":
            return flipped_blocks(pair, None, blocks)
        return _flipped_credit(pair, most)

    def of_checkpoint(scored: Scored) -> Iterator[ItemFlips]:
        for name in scored.results.tiers:
            if name in bridge.results.tiers:
                yield from of_tier(Pair(scored.tier(name), of_bridge(name)))

    return of_checkpoint


def _flipped_credit(pair: Pair, most: int, error: Exception | None = None) -> Iterator[ItemFlips]:
    """Yield the units whose credit changed most; the error says why they are shown without details."""
    text, about = ("", {}) if error is None else (" of a damaged file", {"text": f"({error})"})
    for judged in pair.judged:
        flips = [
            Flip(
                id=f"{judged.ids[place]}{text}",  # other steps show its details
                change=change,
                shared={**about, "theirs": rounded(judged.theirs[place])},
                ours=rounded(judged.ours[place]),
            )
            for place, change in largest(judged.gain, most)
        ]
        yield ItemFlips(
            shape="credit", tier=pair.tier.name, item=judged.item, gain=judged.gain, shown=flips
        )


def _add(page: Page, step: int, item_flips: Iterable[ItemFlips], space: SpaceLeft) -> bool:
    """Put a step's flips on the page, with shortened texts if necessary; False if there is no space."""
    rows: list[dict[str, Any]] = []
    added: dict[str, Any] = {}
    for item_flip in item_flips:
        name = f"{item_flip.tier}/{item_flip.item}"
        known = page["items"].get(name, {})
        added[name] = {flip.id: flip.shared for flip in item_flip.shown if flip.id not in known}
        rows.append(
            {
                "tier": item_flip.tier,
                "shape": item_flip.shape,
                "item": item_flip.item,
                "of": len(item_flip.gain),
                "gained": int((item_flip.gain > 0).sum()),
                "lost": int((item_flip.gain < 0).sum()),
                "label": item_flip.label,
                "shown": [
                    {"id": f.id, "change": f.change, "ours": f.ours} for f in item_flip.shown
                ],
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
    """Return the content with long texts shortened."""
    if isinstance(content, str):
        return cut(content, most=SHORT)
    if isinstance(content, list | tuple):
        return [_cut(part) for part in content]
    return {k: _cut(v) for k, v in content.items()} if isinstance(content, dict) else content
