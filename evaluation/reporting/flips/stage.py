"""Items that flipped against the bridge, for every step, as far as a page has space for them.

    items   {tier/item: {id: what the steps share: a text, the bridge's side}}, once each
    steps   {step: [{tier, item, of, gained, lost, shown: [{id, change, ours}]}]}
    left    steps that found no space on the page

`gained` and `lost` count all items that flipped; `shown` has those that changed most, up to a limit
that depends on how many steps there are.
"""

import functools
import logging
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evaluation.bridge.pairing import Pair
from evaluation.errors import CacheError
from evaluation.metrics.ratios import Ratio
from evaluation.metrics.variance import Floats
from evaluation.prefill import caches
from evaluation.prefill.entries import damaged
from evaluation.reporting.flips.answers import flipped_completions, flipped_probes
from evaluation.reporting.flips.items import (
    NOT_CACHED,
    Flip,
    ItemFlips,
    cut,
    largest,
    rounded,
    scored_cache,
)
from evaluation.reporting.flips.questions import QuestionTexts, flipped_questions
from evaluation.reporting.pages.page import SpaceLeft
from evaluation.reporting.tables.stage_results import Scored, StageResults
from evaluation.settings.candidates import Candidate, candidate_rank
from evaluation.settings.plan import StagePlan
from evaluation.tokenizers.base import LoadedTokenizer
from evaluation.tokenizers.loading import load_tokenizer

log = logging.getLogger(__name__)

MOST, FEWEST = 12, 2
"""Flips of an item shown in each direction: MOST for a few steps, FEWEST for many."""

SHORT = 1500
"""Characters of a text that are shown where a page has no space for whole texts."""

Page = dict[str, Any]

TOKENS = 300
"""Tokens of a block that are shown, from its start."""

Tokens = npt.NDArray[np.integer[Any]]


def stage_flips(stage: StageResults, space: SpaceLeft, first: Sequence[Candidate] = ()) -> Page:
    """Return the flips of all steps and merges that there is space for.

    Args:
        space: Bytes that the page may still grow by; those that the flips need are taken from it.
        first: Steps and merges that get space before the others.

    Returns:
        `items`, `steps` and `left`, as above; all empty without a bridge.
    """
    page: Page = {"items": {}, "steps": {}, "left": []}
    if stage.bridge is None:
        return page
    most = max(FEWEST, min(MOST, 60 // max(1, len(stage.candidates))))
    flips_of = _finder(stage.plan, stage.bridge, most)
    for step in in_order(sorted(stage.candidates, key=candidate_rank), first):
        is_full = bool(page["left"])  # later steps would hardly find space either
        if is_full or not _add(page, step, flips_of(stage.candidates[step]), space):
            page["left"].append(step)
    page["left"].sort(key=candidate_rank)
    return page


def in_order(steps: Sequence[Candidate], first: Sequence[Candidate]) -> list[Candidate]:
    """Return steps in the order in which they get space on a page.

    Args:
        steps: Steps and merges in ascending order.
        first: Steps and merges that get space before the others.

    Returns:
        `first`, then the others, ordered so that any first few of them are spread over all steps.
    """
    bits = max(1, len(steps).bit_length())
    spread = sorted(range(len(steps)), key=lambda i: f"{i:0{bits}b}"[::-1])
    known = [step for step in dict.fromkeys(first) if step in steps]
    return [*known, *(steps[i] for i in spread if steps[i] not in known)]


def _finder(plan: StagePlan, bridge: Scored, most: int) -> Callable[[Scored], Iterator[ItemFlips]]:
    """Return a function that yields a checkpoint's flips, as each tier stores its texts differently."""
    texts, questions = _BlockTexts(plan), QuestionTexts(plan)
    blocks, of_bridge = max(1, most // 3), functools.cache(bridge.tier)

    def of_tier(pair: Pair) -> Iterator[ItemFlips]:
        match pair.tier.name:
            case "tier2":
                return _flipped_blocks(pair, texts, blocks)
            case "tier3":
                return flipped_questions(pair, questions, most)
            case "tier4":
                return flipped_probes(pair, plan.suite.probes)
            case "tier5":
                return flipped_completions(pair, most)
        # other tiers have no texts to show, only the change of each unit's score
        if pair.tier.kind == "nats":
            return _flipped_blocks(pair, None, blocks)
        return _flipped_credit(pair, most)

    def of_checkpoint(scored: Scored) -> Iterator[ItemFlips]:
        for name in scored.results.tiers:
            if name in bridge.results.tiers:
                yield from of_tier(Pair(scored.tier(name), of_bridge(name)))

    return of_checkpoint


def _flipped_credit(pair: Pair, most: int) -> Iterator[ItemFlips]:
    for judged in pair.judged:
        flips = [
            Flip(
                id=judged.ids[place],
                change=change,
                shared={"theirs": rounded(judged.theirs[place])},
                ours=rounded(judged.ours[place]),
            )
            for place, change in largest(judged.gain, most)
        ]
        yield ItemFlips(
            shape="credit", tier=pair.tier.name, item=judged.item, gain=judged.gain, shown=flips
        )


def _add(page: Page, step: Candidate, item_flips: Iterable[ItemFlips], space: SpaceLeft) -> bool:
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
        return [_cut(one) for one in content]
    return {k: _cut(v) for k, v in content.items()} if isinstance(content, dict) else content


class _BlockTexts:
    """The texts of packed blocks, decoded with the tokenizer that packed them.

    Args:
        plan: The plan of the stage whose caches and tokenizer are used.
    """

    def __init__(self, plan: StagePlan) -> None:
        self._plan = plan
        self._slices: dict[str, Tokens | None] = {}

    def read(self, name: str, checksum: Any, block: int) -> dict[str, Any]:
        """Return the beginning of a block's text, or that it is no longer cached.

        Args:
            checksum: Checksums of the slice's data that was scored, as in the results.
            block: Number of the block in the slice.

        Returns:
            `text`, and `cut`: whether the block has more tokens. Only `text` if it is not cached.
        """
        if name not in self._slices:
            self._slices[name] = self._tokens(name, checksum)
        tokens, tokenizer = self._slices[name], self._tokenizer
        if tokens is None or tokenizer is None:
            return {"text": NOT_CACHED}
        text = tokenizer.decode(tokens[block, :TOKENS].tolist())
        return {"text": text, "cut": tokens.shape[1] > TOKENS}

    def _tokens(self, name: str, checksum: Any) -> Tokens | None:
        """Return a slice's packed tokens, (blocks, sequence length); None if they cannot be read."""
        folder = self._plan.cache_folder("tier2", name)
        meta = scored_cache(folder, checksum)
        try:
            return None if meta is None else _map_blocks(folder, meta)
        except CacheError as error:
            log.warning("texts are not shown: %s", error)
            return None

    @cached_property
    def _tokenizer(self) -> LoadedTokenizer | None:
        folder = self._plan.tokenizer_folder
        if not folder.exists():
            return None
        return load_tokenizer(folder, use_fast=self._plan.tokenizer.use_fast)


def _map_blocks(folder: Path, meta: dict[str, Any]) -> Tokens:
    """Memory-map a slice's token ids, without torch; as only parts are read, no checksum is compared."""
    path = folder / caches.TOKENS
    dtype, shape = np.dtype(meta["dtype"]), (meta["blocks"], meta["sequence_length"])
    try:
        offset = caches.data_offset(path, dtype.itemsize * shape[0] * shape[1])
    except (OSError, ValueError, StopIteration, zipfile.BadZipFile) as error:
        raise damaged(path, str(error)) from None
    return np.memmap(path, dtype=dtype, mode="r", offset=offset, shape=shape)


def _flipped_blocks(pair: Pair, texts: _BlockTexts | None, most: int) -> Iterator[ItemFlips]:
    """Yield the blocks that gained and lost most, of slices that have the bridge's blocks."""
    metric = pair.tier.head
    for name, item, other in pair.both:
        mine, theirs = item.units, other.units
        if mine is None or theirs is None or mine.ids != theirs.ids:
            continue
        loss, others = (_of_each(one.measured[metric.name]) for one in (mine, theirs))
        tokens = mine.sums["tokens"]
        flips = []
        for place, change in largest(others - loss, most):
            block, text = int(mine.ids[place]), {"text": NOT_CACHED}
            if texts is not None:
                text = texts.read(name, item.same.get("data"), block)
            about = {"tokens": int(tokens[place]), "theirs": rounded(others[place])}
            ours = rounded(loss[place])
            flips.append(
                Flip(id=f"block {block}", change=change, shared={**text, **about}, ours=ours)
            )
        yield ItemFlips(
            shape="block",
            tier=pair.tier.name,
            item=name,
            gain=others - loss,
            shown=flips,
            label=metric.words,
        )


def _of_each(ratio: Ratio) -> Floats:
    """Return a metric of each block; 0 where nothing is scored."""
    assert ratio.weights is not None
    values: Floats = ratio.amounts / np.where(ratio.weights > 0, ratio.weights, 1.0)
    return values
