"""What each later checkpoint kept of each earlier one: `retention.csv`, `retention.tex`.

The checkpoints are the last one of each stage and the bridges, in the order of the stages. One is
earlier than another if this was trained from it, as the bridges say: two ablations of one stage, or
stages without bridges, are not. See `shared_items` for how two are compared.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path

from evaluation.errors import ResultsError
from evaluation.files import write_text
from evaluation.reporting.headlines import shown_metrics
from evaluation.reporting.tables.score_matrix import Column, Key, heat_map, key_of
from evaluation.reporting.tables.shared_items import (
    Anchor,
    paired,
    retention_rows,
    shared_by_all,
)
from evaluation.reporting.tables.stage_results import Scored, StageResults
from evaluation.reporting.tables.values import Value
from evaluation.results.columns import write_csv
from evaluation.results.deltas_file import DeltaRow
from evaluation.results.read import TierResults, read_tier
from evaluation.results.stage_files import RETENTION, RETENTION_COLUMNS, RETENTION_TEX, RetentionRow
from evaluation.settings.tiers import TierName

log = logging.getLogger(__name__)

NOTE = (
    "Colour: difference from the first checkpoint in the table that was scored on the item, blue for "
    "the better. Arrows: significant by the paired test (Holm's correction over all that two "
    "checkpoints are compared on; an overall value by its own test)."
)


def retention(stages: Iterable[StageResults]) -> list[RetentionRow]:
    """Return a row per pair of checkpoints, item and metric; a pair is one family of tests."""
    read = cache(_read)
    found = list(stages)
    known, begun = anchors(found), _begun_from(found)
    pairs = [
        (earlier, later, paired(earlier, later, read))
        for earlier, later in product(known, known)
        if earlier.identity in _ancestors(later.identity, begun)
    ]
    shared = shared_by_all([both for _, _, both in pairs])
    return [
        row
        for earlier, later, both in pairs
        for row in retention_rows(earlier, later, both, shared, _deltas_of(found, earlier, later))
    ]


def anchors(stages: Iterable[StageResults]) -> list[Anchor]:
    """Return one for each checkpoint, by its identity, in the order in which stages come to it."""
    found: dict[str, Anchor] = {}
    for stage in stages:
        scored = []
        if stage.bridge is not None:
            scored.append((stage.bridge.results.label, stage.bridge))
        if (last := _last(stage)) is not None:
            scored.append((f"{stage.plan.name}/{max(stage.steps)}", last))
        for label, one in scored:
            identity = _identity(one)
            if label in {other.label for key, other in found.items() if key != identity}:
                label = f"{label} ({identity[:8]})"
            known = found.get(identity, Anchor(label, identity, ()))
            found[identity] = replace(known, sides=(*known.sides, one.results))
    return list(found.values())


def _last(stage: StageResults) -> Scored | None:
    return stage.steps[max(stage.steps)] if stage.steps else None


def _identity(scored: Scored) -> str:
    return scored.results.header.checkpoint_identity


def _deltas_of(
    stages: Iterable[StageResults], earlier: Anchor, later: Anchor
) -> Sequence[DeltaRow]:
    """Return what a stage has of these two, if they are its bridge and its last step."""
    for stage in stages:
        last = _last(stage)
        if stage.bridge is None or last is None or max(stage.steps) not in stage.deltas:
            continue
        if (_identity(stage.bridge), _identity(last)) == (earlier.identity, later.identity):
            return stage.deltas[max(stage.steps)].deltas
    return ()


def _begun_from(stages: Sequence[StageResults]) -> dict[str, set[str]]:
    """Return what each checkpoint's stage began with, by identity: of a stage's last, or a bridge."""
    by_name = {stage.plan.name: stage for stage in stages}
    bridges = {name: _bridge_of(stage, by_name) for name, stage in by_name.items()}
    begun: dict[str, set[str]] = {}
    for name, stage in by_name.items():
        own, bridge = bridges[name], stage.plan.stage.bridge
        if own is None:
            continue
        if (last := _last(stage)) is not None:
            begun.setdefault(_identity(last), set()).add(own)
        before = None if bridge is None or bridge.stage is None else bridges.get(bridge.stage)
        if before is not None:
            begun.setdefault(own, set()).add(before)
    return begun


def _bridge_of(stage: StageResults, by_name: Mapping[str, StageResults]) -> str | None:
    """Return a bridge's identity, from the results of its own stage where it has none here yet."""
    if stage.bridge is not None:
        return _identity(stage.bridge)
    bridge = stage.plan.stage.bridge
    if bridge is None or bridge.stage is None or bridge.stage not in by_name:
        return None
    steps = by_name[bridge.stage].steps
    step = max(steps, default=None) if bridge.step is None else bridge.step
    return _identity(steps[step]) if step in steps else None


def _ancestors(identity: str, begun: Mapping[str, set[str]]) -> set[str]:
    """Return all that it was trained from; never itself, even where bridges form a ring."""
    found: set[str] = set()
    waiting = [identity]
    while waiting:
        new = begun.get(waiting.pop(), set()) - found
        found |= new
        waiting += new
    return found - {identity}


def _read(folder: Path, tier: TierName) -> TierResults | None:
    try:
        return read_tier(folder, tier)
    except ResultsError as error:  # damaged since it was read
        log.warning("not in the table of retention: %s", error)
        return None


def write_retention(rows: Sequence[RetentionRow], folder: Path) -> None:
    """Write both files into the folder of all results."""
    write_csv(folder / RETENTION, RETENTION_COLUMNS, [row.model_dump() for row in rows])
    write_text(folder / RETENTION_TEX, heat_map(_columns(rows), NOTE))


def _columns(rows: Sequence[RetentionRow]) -> list[Column]:
    """Return a column for each checkpoint, compared with the first one that has the item."""
    known = shown_metrics((row.tier, row.item, row.metric) for row in rows)
    shown = [row for row in rows if row.metric == known[row.tier, row.item]]
    first: dict[Key, str] = {}
    for row in shown:
        first.setdefault(key_of(row), row.earlier)
    against = [row for row in shown if row.earlier == first[key_of(row)]]
    labels = dict.fromkeys(label for row in rows for label in (row.earlier, row.later))
    columns = []
    for label in labels:
        own = {key_of(row): row for row in against if row.later == label}
        values = {
            key: _value(row, row.value if row.later == label else row.earlier_value)
            for row in against
            if (key := key_of(row)) and (row.later == label or first[key] == label)
        }
        flags = {key: row.flag for key, row in own.items() if row.flag}
        columns.append(Column(label, values, flags, {key: row.delta for key, row in own.items()}))
    return columns


def _value(row: RetentionRow, value: float) -> Value:
    return Value(
        tier=row.tier,
        item=row.item,
        group=None,
        metric=row.metric,
        value=value,
        low=None,
        high=None,
        n=row.n,
    )
