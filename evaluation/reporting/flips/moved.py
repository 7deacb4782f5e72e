"""What a flip consists of, and the texts of items, from caches that still hold what was scored."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from evaluation.prefill.caches import META, read_meta
from evaluation.settings.tiers import TierName

Turned = Literal["right", "wrong", "same"]

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

    tier: TierName
    item: str
    of: int
    gained: int
    lost: int
    shown: list[Flip] = field(default_factory=list)
    label: str = ""


def scored_cache(folder: Path, checksum: Any) -> dict[str, Any] | None:
    """The meta.json of a cache; None where it was cleared, or holds other data by now."""
    if not (folder / META).exists():
        return None
    meta = read_meta(folder)
    return meta if meta["checksum"] == checksum else None


def rounded(value: float) -> float:
    return float(f"{value:.5g}")
