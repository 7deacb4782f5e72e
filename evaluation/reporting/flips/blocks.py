"""Blocks of packed text (Tier2) whose loss changed most, and their texts."""

import logging
import zipfile
from collections.abc import Iterator
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
from evaluation.reporting.flips.items import (
    NOT_CACHED,
    Flip,
    ItemFlips,
    largest,
    rounded,
    scored_cache,
)
from evaluation.results.read import TierResults
from evaluation.settings.plan import StagePlan
from evaluation.tokenizers.base import LoadedTokenizer
from evaluation.tokenizers.loading import load_tokenizer

log = logging.getLogger(__name__)

TOKENS = 300
"""Tokens of a block that a report shows, from its start."""

Tokens = npt.NDArray[np.integer[Any]]


class BlockTexts:
    """The texts of a stage's packed blocks, decoded with the tokenizer that packed them."""

    def __init__(self, plan: StagePlan) -> None:
        self._plan = plan
        self._slices: dict[str, Tokens | None] = {}

    def read(
        self, name: str, checksum: Any, block: int, most: int | None = TOKENS
    ) -> dict[str, Any]:
        """Return the beginning of a block's text, or that it is no longer cached.

        Args:
            checksum: Checksums of the slice's data that was scored, as in the results.
            most: Most tokens of the text; None for all.

        Returns:
            `text`, and `cut`: whether the block has more tokens. Only `text` if it is not cached.
        """
        if name not in self._slices:
            self._slices[name] = self._tokens(name, checksum)
        tokens, tokenizer = self._slices[name], self._tokenizer
        if tokens is None or tokenizer is None:
            return {"text": NOT_CACHED}
        shown = tokens[block, :most]
        return {"text": tokenizer.decode(shown.tolist()), "cut": tokens.shape[1] > len(shown)}

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


def flipped_blocks(pair: Pair, texts: BlockTexts | None, most: int) -> Iterator[ItemFlips]:
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


def block_losses(found: TierResults, name: str) -> dict[str, float]:
    """Return the loss of each block of a slice by its number; none without blocks."""
    units = found.items[name].units
    if units is None:
        return {}
    losses = _of_each(units.measured[found.tier.headline])
    return dict(zip(map(str, units.ids), map(float, losses), strict=True))


def _of_each(ratio: Ratio) -> Floats:
    """Return a metric of each block; 0 where nothing is scored."""
    assert ratio.weights is not None
    values: Floats = ratio.amounts / np.where(ratio.weights > 0, ratio.weights, 1.0)
    return values
