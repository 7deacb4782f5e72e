"""Tier files of an external program: what it wrote, under a header that is ours."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from evaluation.checkpoints.subjects import Subject
from evaluation.errors import ScoringError
from evaluation.files import write_parquet, write_text
from evaluation.grading.header import origin
from evaluation.grading.tiers import GradedTier
from evaluation.scoring.external import LINE, command_name
from evaluation.settings.tiers import TIERS
from evaluation.store import ScoreStore


def external_tier(
    subject: Subject, store: ScoreStore, tier: str, about: Mapping[str, Any]
) -> GradedTier:
    """The program's own keys stay, but for those of the header."""
    name = about["tiers"][tier]["external"]
    stored = store.read(name)
    if stored is None:
        raise ScoringError(f"{store.folder / name}: the score is gone; score this checkpoint again")
    protocol = f"external: {command_name(subject.plan.stage.command or '')}"
    content = {**stored.summary["content"], **origin(subject, about), "protocol": protocol}
    section = TIERS[tier].section
    for item, entry in (content.get(section) or {}).items():
        known = getattr(subject.plan.suite, section).get(item)
        if isinstance(entry, dict) and hasattr(known, "group"):
            entry["group"] = known.group
    if not stored.summary["has_items"]:
        return GradedTier(content, None)
    return GradedTier(content, partial(_write, stored.table))


def _write(table: pa.Table, path: Path) -> None:
    if path.suffix == ".parquet":
        write_parquet(path, table)
    else:
        write_text(path, "".join(f"{line}\n" for line in table[LINE].to_pylist()))
