"""Tier2: the blocks whose loss moved most, with the text that they begin with."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from evaluation.bridge.results import Blocks, Results
from evaluation.prefill.caches import map_blocks
from evaluation.reporting.flips.moved import GONE, Flip, Moved, rounded, scored_cache
from evaluation.settings.plan import StagePlan

TOKENS = 300
"""Tokens of a block that are shown, from its start."""


class Decoder(Protocol):
    """What both kinds of tokenizer do with ids."""

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = ...) -> str: ...


class BlockTexts:
    """Decodes packed tokens with the tokenizer that packed them."""

    def __init__(self, plan: StagePlan) -> None:
        self._plan = plan
        self._known: dict[tuple[str, int], dict[str, Any]] = {}

    def read(self, name: str, checksum: Any, blocks: Sequence[int]) -> list[dict[str, Any]]:
        """Each block's text, or that it is gone."""
        new = [block for block in blocks if (name, block) not in self._known]
        if new:
            self._known |= self._decode(name, checksum, new)
        return [self._known[name, block] for block in blocks]

    def _decode(
        self, name: str, checksum: Any, blocks: Sequence[int]
    ) -> dict[tuple[str, int], dict[str, Any]]:
        folder = self._plan.slice_folder(name)
        meta = scored_cache(folder, checksum)
        if meta is None or self._tokenizer is None:
            return {(name, block): {"text": GONE} for block in blocks}
        tokens = map_blocks(folder, meta)  # (blocks, sequence length)
        found = {}
        for block in blocks:
            ids = tokens[block, :TOKENS].tolist()
            text = self._tokenizer.decode(ids, skip_special_tokens=False)
            found[name, block] = {"text": text, "cut": tokens.shape[1] > TOKENS}
        return found

    @cached_property
    def _tokenizer(self) -> Decoder | None:
        """The `tokenizers` library alone where it will do: transformers takes seconds to import."""
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


def flipped_blocks(ours: Results, bridge: Results, texts: BlockTexts, most: int) -> Iterable[Moved]:
    """The blocks of each slice that lost and gained most nats a token."""
    for name, mine in ours.slices.items():
        other = bridge.slices.get(name)
        if other is None or mine.blocks is None or other.blocks is None:
            continue
        if mine.blocks.block.tolist() == other.blocks.block.tolist():
            yield _slice(name, mine.data, mine.blocks, other.blocks, texts, most)


def _slice(
    name: str, checksum: Any, mine: Blocks, other: Blocks, texts: BlockTexts, most: int
) -> Moved:
    here, there = mine.nats / mine.tokens, other.nats / other.tokens
    change = here - there
    order = np.argsort(change, kind="stable")
    gains, losses = order[change[order] < 0], order[change[order] > 0][::-1]
    chosen = [*gains[:most], *losses[:most]]
    numbers = [int(mine.block[i]) for i in chosen]
    shown = [
        Flip(
            id=f"block {number}",
            turned="right" if change[i] < 0 else "wrong",
            shared={**text, "tokens": int(mine.tokens[i]), "theirs": rounded(there[i])},
            ours=rounded(here[i]),
        )
        for i, number, text in zip(
            chosen, numbers, texts.read(name, checksum, numbers), strict=True
        )
    ]
    return Moved(
        tier="tier2",
        item=name,
        of=len(change),
        gained=len(gains),
        lost=len(losses),
        shown=shown,
        label="nats per token",
    )
