"""Items that gained or lost against the bridge: how they are chosen, and what a page shows of them."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from evaluation.errors import CacheError
from evaluation.metrics.variance import Floats
from evaluation.prefill.entries import META, read_meta
from evaluation.settings.tiers import TierName

log = logging.getLogger(__name__)

Change = Literal["right", "wrong", "same"]

Shape = Literal["block", "choices", "answers", "credit"]
"""How a page draws a flip."""

NOT_CACHED = "(the text is no longer in the cache that was scored)"
NOT_STORED = "(not stored)"

LONGEST = 100_000
"""Characters of a prompt or response that are shown."""


@dataclass(frozen=True, kw_only=True)
class Flip:
    """A question, prompt or block: `shared` is the same at every step, `ours` is this step's."""

    id: str
    change: Change
    shared: dict[str, Any]
    ours: Any


@dataclass(frozen=True, kw_only=True)
class ItemFlips:
    """A slice, task or category: the gains of its units, (n,), and the flips that are shown."""

    shape: Shape
    tier: TierName
    item: str
    gain: Floats
    shown: Sequence[Flip]
    label: str = ""


def largest(gain: Floats, most: int, size: Floats | None = None) -> list[tuple[int, Change]]:
    """Return index and direction of the largest gains, then of the largest losses.

    Args:
        gain: Gain of each unit against the bridge, shape (n,).
        most: Most flips in each direction.
        size: Values that order units, largest absolute value first, shape (n,); None: `gain`.
    """
    size = np.abs(gain if size is None else size)
    directions: tuple[tuple[Change, int], ...] = (("right", 1), ("wrong", -1))
    chosen: list[tuple[int, Change]] = []
    for change, sign in directions:
        indices = np.flatnonzero(gain * sign > 0)
        order = np.argsort(-size[indices], kind="stable")
        chosen += [(int(place), change) for place in indices[order][:most]]
    return chosen


def scored_cache(folder: Path, checksum: Any) -> dict[str, Any] | None:
    """Return the meta.json of a cache that still holds the data with these checksums; else None."""
    if not (folder / META).exists():
        return None
    try:
        meta = read_meta(folder)
    except CacheError as error:
        log.warning("texts are not shown: %s", error)
        return None
    stored = meta.get("checksum", {})
    if not isinstance(checksum, dict):  # an external program's
        return meta if stored == checksum else None
    return meta if checksum and checksum.items() <= stored.items() else None


def cut(text: str, *, from_end: bool = False, most: int = LONGEST) -> str:
    """Shorten a text for a page; `from_end` keeps its end, where a prompt has its question."""
    if len(text) <= most:
        return text
    return f"… {text[-most:]}" if from_end else f"{text[:most]} … ({len(text)} characters)"


def rounded(value: float) -> float:
    """Return a number with the five significant digits that pages show."""
    return float(f"{value:.5g}")
