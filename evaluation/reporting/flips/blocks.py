"""Blocks of text (Tier2) whose loss changed most, with the text that they begin with."""

import logging
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np

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


class Decoder(Protocol):
    """A tokenizer of either library."""

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = ...) -> str: ...


class BlockTexts:
    """The texts of packed blocks, decoded with the tokenizer that packed them."""

    def __init__(self, plan: StagePlan) -> None:
        self._plan = plan
        self._known: dict[tuple[str, int], dict[str, Any]] = {}

    def read(self, name: str, checksum: Any, blocks: Sequence[int]) -> list[dict[str, Any]]:
        """Return each block's text, or that it is no longer cached."""
        new = [block for block in blocks if (name, block) not in self._known]
        if new:
            self._known |= self._decode(name, checksum, new)
        return [self._known[name, block] for block in blocks]

    def _decode(
        self, name: str, checksum: Any, blocks: Sequence[int]
    ) -> dict[tuple[str, int], dict[str, Any]]:
        folder = self._plan.slice_folder(name)
        meta = scored_cache(folder, checksum)
        tokens = None
        if meta is not None and self._tokenizer is not None:
            try:
                tokens = map_blocks(folder, meta)  # (blocks, sequence length)
            except CacheError as error:
                log.warning("texts are not shown: %s", error)
        if tokens is None or self._tokenizer is None:
            return {(name, block): {"text": NOT_CACHED} for block in blocks}
        found = {}
        for block in blocks:
            ids = tokens[block, :TOKENS].tolist()
            text = self._tokenizer.decode(ids, skip_special_tokens=False)
            found[name, block] = {"text": text, "cut": tokens.shape[1] > TOKENS}
        return found

    @cached_property
    def _tokenizer(self) -> Decoder | None:
        """Use the `tokenizers` library where it will do: transformers takes seconds to import."""
        folder = self._plan.tokenizer_folder
        if (folder / "tokenizer.json").exists():
            from tokenizers import Tokenizer

            fast: Decoder = Tokenizer.from_file(str(folder / "tokenizer.json"))
            return fast
        if not folder.exists():
            return None
        from evaluation.prefill.tokenizers import load_tokenizer

        slow: Decoder = load_tokenizer(folder, use_fast=self._plan.tokenizer.use_fast)
        return slow


def flipped_blocks(pair: Pair, texts: BlockTexts | None, most: int) -> Iterator[ItemFlips]:
    """Yield the blocks that gained and lost most nats per token; without `texts` as numbers."""
    for name, item, other in pair.both(NatsItem):
        mine, theirs = item.blocks, other.blocks
        if mine is None or theirs is None or mine.ids.tolist() != theirs.ids.tolist():
            continue
        loss, others = _nats_per_token(mine), _nats_per_token(theirs)
        chosen = largest(others - loss, most)
        ids = [int(mine.ids[place]) for place, _ in chosen]
        shown: Sequence[dict[str, Any]] = [{"text": NOT_CACHED}] * len(ids)
        if texts is not None:
            shown = texts.read(name, item.same.get("data"), ids)
        flips = [
            Flip(
                id=f"block {block}",
                turned=turned,
                shared={
                    **text,
                    "tokens": int(mine.tokens[place]),
                    "theirs": rounded(others[place]),
                },
                ours=rounded(loss[place]),
            )
            for (place, turned), block, text in zip(chosen, ids, shown, strict=True)
        ]
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
