"""What prefill made for a stage: read once for all checkpoints that a process scores."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evaluation.prefill.entries import read_meta
from evaluation.prefill.tiers import PREFILLS, Cached
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TierName

StageData = dict[TierName, dict[str, Cached]]
"""Every tier's entries by name, read and checked."""

_read: dict[Path, tuple[Mapping[str, Any], Cached]] = {}
"""Entries of the stage that was scored last, by folder, with the meta.json of each."""


def read_stage_data(plan: StagePlan) -> StageData:
    """Reads all caches of a stage that are not what they were when this process last read them.

    Many questions take seconds, in which a GPU would wait before each checkpoint.

    Raises:
        CacheError: names the first entry that is missing or damaged.
    """
    global _read
    before, _read = _read, {}
    return {
        tier: {
            name: _entry(tier, plan.cache_folder(tier, name), before)
            for name in plan.cache_entries(tier)
        }
        for tier in plan.tiers
    }


def _entry(
    tier: TierName, folder: Path, before: Mapping[Path, tuple[Mapping[str, Any], Cached]]
) -> Cached:
    meta = read_meta(folder)  # it has checksums of all files beside it
    known = before.get(folder)
    if known is None or known[0] != meta:
        known = meta, PREFILLS[tier].read(folder)
    _read[folder] = known
    return known[1]
