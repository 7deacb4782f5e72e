"""Blocks of text (Tier2) whose loss changed most, with the text that they begin with."""

import logging
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from evaluation.bridge.pairing import Pair
from evaluation.errors import CacheError
from evaluation.metrics.variance import Floats
from evaluation.prefill.caches import map_blocks
from evaluation.reporting.flips.items import (
    NOT_CACHED,
    Flip,
    ItemFlips,
    largest,
    rounded,
    scored_cache,
)
from evaluation.results.kinds import Blocks, NatsItem
from evaluation.settings.plan import StagePlan

log = logging.getLogger(__name__)

TOKENS = 300
"""Tokens of a block that are shown, from its start."""

Tokens = npt.NDArray[np.integer[Any]]


class BlockTexts:
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
            name: Name of the slice.
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
        text = tokenizer.decode(tokens[block, :TOKENS].tolist(), skip_special_tokens=False)
        return {"text": text, "cut": tokens.shape[1] > TOKENS}

    def _tokens(self, name: str, checksum: Any) -> Tokens | None:
        """Return a slice's packed tokens, (blocks, sequence length); None if they cannot be read."""
        folder = self._plan.slice_folder(name)
        meta = scored_cache(folder, checksum)
        try:
            return None if meta is None else map_blocks(folder, meta)
        except CacheError as error:
            log.warning("texts are not shown: %s", error)
            return None

    @cached_property
    def _tokenizer(self) -> Any:
        """Use the `tokenizers` library where it will do: transformers takes seconds to import."""
        folder = self._plan.tokenizer_folder
        if (folder / "tokenizer.json").exists():
            from tokenizers import Tokenizer

            return Tokenizer.from_file(str(folder / "tokenizer.json"))
        if not folder.exists():
            return None
        from evaluation.prefill.tokenizers import load_tokenizer

        return load_tokenizer(folder, use_fast=self._plan.tokenizer.use_fast)


def flipped_blocks(pair: Pair, texts: BlockTexts | None, most: int) -> Iterator[ItemFlips]:
    """Yield the blocks that gained and lost most nats per token.

    Args:
        pair: A tier's results of a step and of the bridge.
        texts: Where the texts come from; None for numbers alone.
        most: Flips shown of an item in each direction.

    Yields:
        The flips of a slice; slices without blocks, or with others than the bridge's, are left out.
    """
    for name, item, other in pair.both(NatsItem):
        mine, theirs = item.blocks, other.blocks
        if mine is None or theirs is None or mine.ids.tolist() != theirs.ids.tolist():
            continue
        loss, others = _nats_per_token(mine), _nats_per_token(theirs)
        flips = []
        for place, change in largest(others - loss, most):
            block, text = int(mine.ids[place]), {"text": NOT_CACHED}
            if texts is not None:
                text = texts.read(name, item.same.get("data"), block)
            about = {"tokens": int(mine.tokens[place]), "theirs": rounded(others[place])}
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
            label="nats per token",
        )


def _nats_per_token(blocks: Blocks) -> Floats:
    nats: Floats = blocks.nats / np.maximum(blocks.tokens, 1)
    return nats
