"""What a flip consists of, and the texts of items, from caches that still hold what was scored."""

import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from evaluation.errors import CacheError
from evaluation.prefill.caches import META, read_meta
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS, TierName

log = logging.getLogger(__name__)

Turned = Literal["right", "wrong", "same"]

Shape = Literal["block", "choices", "answers", "credit"]
"""How a page draws a flip."""

GONE = "(the text is no longer in the cache that was scored)"


@dataclass(frozen=True, kw_only=True)
class Flip:
    """An item that moved: `shared` is the same at every step, `ours` is this step's."""

    id: str
    turned: Turned
    shared: dict[str, Any]
    ours: Any


@dataclass(frozen=True, kw_only=True)
class Moved:
    """A slice, task or category: how many of its items turned, and those that are shown."""

    shape: Shape
    tier: TierName
    item: str
    of: int
    gained: int
    lost: int
    shown: list[Flip] = field(default_factory=list)
    label: str = ""


def cache_folder(plan: StagePlan, tier: TierName, item: str) -> Path | None:
    """Where an item is cached by itself; None if it is not."""
    return None if TIERS[tier].cache.per_stage else plan.cache_folder(tier, item)


def scored_cache(folder: Path, checksum: Any) -> dict[str, Any] | None:
    """The meta.json of a cache; None where it was cleared or damaged, or holds other data by now."""
    if not (folder / META).exists():
        return None
    try:
        meta = read_meta(folder)
    except CacheError as error:
        log.warning("texts are not shown: %s", error)
        return None
    known = meta.get("checksum", {})
    if not isinstance(checksum, dict):  # an external program's
        return meta if known == checksum else None
    return meta if checksum and checksum.items() <= known.items() else None


def rounded(value: float) -> float:
    return float(f"{value:.5g}")
