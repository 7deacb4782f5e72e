"""Tier2: the blocks whose loss moved most, with the text that they begin with."""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from evaluation.errors import CacheError
from evaluation.prefill.caches import map_blocks
from evaluation.reporting.flips.moved import GONE, Flip, Moved, rounded, scored_cache
from evaluation.results.kinds import Blocks, NatsItem
from evaluation.results.read import TierResults
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TierName

log = logging.getLogger(__name__)

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
        try:
            tokens = map_blocks(folder, meta)  # (blocks, sequence length)
        except CacheError as error:
            log.warning("texts are not shown: %s", error)
            return {(name, block): {"text": GONE} for block in blocks}
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


def flipped_blocks(
    ours: TierResults, bridge: TierResults, texts: BlockTexts | None, most: int
) -> Iterable[Moved]:
    """The blocks of each item that lost and gained most nats a token; without `texts` as numbers."""
    for name, mine in ours.items.items():
        other = bridge.items.get(name)
        if not isinstance(mine, NatsItem) or not isinstance(other, NatsItem):
            continue
        if mine.blocks is None or other.blocks is None:
            continue
        if mine.blocks.ids.tolist() == other.blocks.ids.tolist():
            chosen = _chosen(mine.blocks, other.blocks, most)
            data = mine.same.get("data")
            known = [{"text": GONE}] * len(chosen.ids)
            shown = known if texts is None else texts.read(name, data, chosen.ids)
            yield _moved(ours.tier.name, name, chosen, shown)


@dataclass(frozen=True)
class _Chosen:
    """Blocks of an item: how many gained and lost, and of those that moved most what each scores."""

    of: int
    gained: int
    lost: int
    ids: list[int]
    tokens: list[int]
    here: list[float]
    there: list[float]


def _chosen(mine: Blocks, other: Blocks, most: int) -> _Chosen:
    tokens = np.maximum(mine.tokens, 1)
    here, there = mine.nats / tokens, other.nats / tokens
    change = here - there
    order = np.argsort(change, kind="stable")
    gains, losses = order[change[order] < 0], order[change[order] > 0][::-1]
    rows = [*gains[:most], *losses[:most]]
    return _Chosen(
        of=len(change),
        gained=len(gains),
        lost=len(losses),
        ids=[int(mine.ids[i]) for i in rows],
        tokens=[int(mine.tokens[i]) for i in rows],
        here=[float(here[i]) for i in rows],
        there=[float(there[i]) for i in rows],
    )


def _moved(tier: TierName, name: str, chosen: _Chosen, texts: Sequence[dict[str, Any]]) -> Moved:
    columns = zip(chosen.ids, chosen.tokens, chosen.here, chosen.there, texts, strict=True)
    shown = [
        Flip(
            id=f"block {number}",
            turned="right" if here - there < 0 else "wrong",
            shared={**text, "tokens": tokens, "theirs": rounded(there)},
            ours=rounded(here),
        )
        for number, tokens, here, there, text in columns
    ]
    return Moved(
        shape="block",
        tier=tier,
        item=name,
        of=chosen.of,
        gained=chosen.gained,
        lost=chosen.lost,
        shown=shown,
        label="nats per token",
    )
