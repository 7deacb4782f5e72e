"""What each later checkpoint retains of each earlier one: `retention.csv`, `retention.tex`.

The checkpoints are the last one of each stage and the bridges, in the order of the stages. A checkpoint
is earlier than another one that was trained from it, as the bridges state. Two ablations of one stage
are not compared with each other, nor are stages without bridges.

Two checkpoints are compared over all items that both were scored on, in one family of tests. The items
may be from any stage's suite, as a bridge is scored on the suite of the stage after it. An overall value
is the mean over the items that all pairs share, so that all pairs are comparable. The deltas of a stage's
last step against its bridge are those of the stage's files; only items outside its suite are tested here.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from evaluation.bridge.comparable import check_comparable, engine_notes
from evaluation.bridge.delta import OVERALL, Delta, corrected
from evaluation.bridge.deltas import tier_deltas
from evaluation.bridge.pairing import Pair
from evaluation.errors import BridgeError, ResultsError
from evaluation.files import write_text
from evaluation.reporting.headlines import shown_metrics
from evaluation.reporting.tables.score_matrix import Cell, Columns, Key, heat_map, key_of
from evaluation.reporting.tables.stage_results import Scored, StageResults
from evaluation.results.columns import write_csv
from evaluation.results.delta_rows import DeltaRow
from evaluation.results.read import Results, read_tier
from evaluation.results.stage_files import RETENTION, RETENTION_COLUMNS, RETENTION_TEX, RetentionRow
from evaluation.settings.tiers import TIERS, TierName

log = logging.getLogger(__name__)

NOTE = (
    "Colour: difference from the first checkpoint in the table that was scored on the item, blue for "
    "the better. Arrows: significant by the paired test (Holm's correction over all that two "
    "checkpoints are compared on; an overall value by its own test)."
)

_COPIED = ("tier", "item", "value", "delta", "low", "high", "p_holm", "n", "flag")

Pairs = Mapping[TierName, Pair]


@dataclass(frozen=True)
class _Anchor:
    """A bridge or a stage's last checkpoint, with all results of it."""

    label: str
    identity: str
    sides: tuple[Results, ...]


def retention(stages: Iterable[StageResults]) -> list[RetentionRow]:
    """Compare later checkpoints with earlier ones, item by item; each pair is one family of tests."""
    results = list(stages)
    known, parents = _anchors(results), _parents(results)
    pairs = [
        (earlier, later, _paired(earlier, later))
        for earlier, later in product(known, known)
        if earlier.identity in _ancestors(later.identity, parents)
    ]
    shared = _shared_by_all([both for _, _, both in pairs])
    return [
        row
        for earlier, later, both in pairs
        for row in _retention_rows(
            earlier, later, both, shared, _deltas_of(results, earlier, later)
        )
    ]


def _anchors(stages: Iterable[StageResults]) -> list[_Anchor]:
    """Return each stage's bridge and last step, each checkpoint once, in the order of the stages."""
    anchors: dict[str, _Anchor] = {}
    for stage in stages:
        scored = []
        if stage.bridge is not None:
            scored.append((stage.bridge.results.label, stage.bridge))
        if (last := stage.last) is not None:
            scored.append((f"{stage.plan.name}/{max(stage.steps)}", last))
        for label, results in scored:
            identity = _identity(results)
            if label in {other.label for key, other in anchors.items() if key != identity}:
                label = f"{label} ({identity[:8]})"
            anchor = anchors.get(identity, _Anchor(label, identity, ()))
            anchors[identity] = replace(anchor, sides=(*anchor.sides, results.results))
    return list(anchors.values())


def _identity(scored: Scored) -> str:
    return scored.results.header.checkpoint_identity


def _deltas_of(
    stages: Iterable[StageResults], earlier: _Anchor, later: _Anchor
) -> Sequence[DeltaRow]:
    """Return a stage's deltas of these two, if they are its bridge and its last step."""
    for stage in stages:
        last = stage.last
        if stage.bridge is None or last is None or max(stage.steps) not in stage.deltas:
            continue
        if (_identity(stage.bridge), _identity(last)) == (earlier.identity, later.identity):
            return stage.deltas[max(stage.steps)].deltas
    return ()


def _parents(stages: Sequence[StageResults]) -> dict[str, set[str]]:
    """Return the checkpoints that each stage's last checkpoint or bridge was trained from, by identity."""
    by_name = {stage.plan.name: stage for stage in stages}
    bridges = {name: _bridge_of(stage, by_name) for name, stage in by_name.items()}
    parents: dict[str, set[str]] = {}
    for name, stage in by_name.items():
        own, bridge = bridges[name], stage.plan.stage.bridge
        if own is None:
            continue
        if (last := stage.last) is not None:
            parents.setdefault(_identity(last), set()).add(own)
        before = None if bridge is None or bridge.stage is None else bridges.get(bridge.stage)
        if before is not None:
            parents.setdefault(own, set()).add(before)
    return parents


def _bridge_of(stage: StageResults, by_name: Mapping[str, StageResults]) -> str | None:
    """Return the identity of a stage's bridge; if it has no results yet, from those of the bridge's stage."""
    if stage.bridge is not None:
        return _identity(stage.bridge)
    bridge = stage.plan.stage.bridge
    if bridge is None or bridge.stage is None or bridge.stage not in by_name:
        return None
    steps = by_name[bridge.stage].steps
    step = max(steps, default=None) if bridge.step is None else bridge.step
    return _identity(steps[step]) if step in steps else None


def _ancestors(identity: str, parents: Mapping[str, set[str]]) -> set[str]:
    """Return all checkpoints that one was trained from; never itself, even where bridges form a cycle."""
    names: set[str] = set()
    waiting = [identity]
    while waiting:
        new = parents.get(waiting.pop(), set()) - names
        names |= new
        waiting += new
    return names - {identity}


def _paired(earlier: _Anchor, later: _Anchor) -> Pairs:
    """Pair two checkpoints over all items with the same data, for each tier that has any."""
    found = {tier: _joined(list(_comparable(earlier, later, tier))) for tier in TIERS}
    return {tier: pair for tier, pair in found.items() if pair is not None}


def _comparable(earlier: _Anchor, later: _Anchor, tier: TierName) -> Iterator[Pair]:
    """Yield pairs of their results over shared items, unless these must not be compared."""
    for sides in product(later.sides, earlier.sides):
        if not all(tier in side.tiers for side in sides):
            continue
        try:
            pair = Pair(*(read_tier(side.folder, tier) for side in sides)).alike
            if pair.ours.items:
                check_comparable(*pair.results)
                for note in engine_notes(*pair):
                    log.warning("table of retention: %s", note)
                yield pair
        except (BridgeError, ResultsError) as error:
            log.warning("not in the table of retention: %s", error)


def _joined(pairs: Sequence[Pair]) -> Pair | None:
    """Take each item from the pair with most items, and rates over all units if that pair has all items."""
    if not pairs:
        return None
    first, *others = sorted(pairs, key=lambda pair: -len(pair.ours.items))
    ours, theirs = dict(first.ours.items), dict(first.theirs.items)
    for pair in others:
        ours = {**pair.ours.items, **ours}
        theirs = {**pair.theirs.items, **theirs}
    overall = first.ours.overall if len(ours) == len(first.ours.items) else None
    return Pair(
        replace(first.ours, items=ours, overall=overall), replace(first.theirs, items=theirs)
    )


def _shared_by_all(pairs: Sequence[Pairs]) -> dict[TierName, tuple[str, ...]]:
    """Return the items that all pairs share, for each tier in which some pair has more."""
    by_tier: dict[TierName, tuple[str, ...]] = {}
    for tier in TIERS:
        known = [pair[tier].ours.items for pair in pairs if tier in pair]
        names = [name for name in (known[0] if known else ()) if all(name in k for k in known)]
        if not TIERS[tier].rates and any(len(items) > len(names) for items in known):
            by_tier[tier] = tuple(names)
    return by_tier


def _retention_rows(
    earlier: _Anchor,
    later: _Anchor,
    pairs: Pairs,
    shared: Mapping[TierName, Sequence[str]],
    delta_rows: Sequence[DeltaRow],
) -> Iterator[RetentionRow]:
    """Yield all rows of two checkpoints; `delta_rows` are a stage's deltas of these two."""
    deltas = [delta for tier, pair in pairs.items() for delta in _deltas(pair, shared.get(tier))]
    of_stage = {
        key_of(row): row.model_dump()
        for row in delta_rows
        if row.item != OVERALL or row.tier not in shared
    }
    new = corrected([delta for delta in deltas if key_of(delta) not in of_stage])
    rows = {**of_stage, **{key_of(delta): delta.columns for delta in new}}
    for delta in deltas:
        retained = rows[key_of(delta)]
        values = {
            **{name: retained[name] for name in _COPIED},
            "metric": key_of(delta)[2],
            "earlier_value": retained["bridge_value"],
        }
        if delta.item == OVERALL and (names := shared.get(delta.tier)) is not None:
            count = f"{len(names)} shared {'item' if len(names) == 1 else 'items'}"
            values["item"] = f"{OVERALL} of {count}"
        yield RetentionRow(earlier=earlier.label, later=later.label, **values)


def _deltas(pair: Pair, shared: Sequence[str] | None) -> list[Delta]:
    """Return the deltas of all items, and of the mean over the shared ones where these are given."""
    deltas = tier_deltas(pair)
    if shared is None:
        return deltas
    of_items = [delta for delta in deltas if delta.item != OVERALL]
    overall = tier_deltas(pair.over(shared)) if shared else []
    return [*of_items, *(delta for delta in overall if delta.item == OVERALL)]


def write_retention(rows: Sequence[RetentionRow], folder: Path) -> None:
    """Write the table and the heat map into the folder of all results."""
    write_csv(folder / RETENTION, RETENTION_COLUMNS, [row.model_dump() for row in rows])
    write_text(folder / RETENTION_TEX, heat_map(_columns(rows), NOTE))


def _columns(rows: Sequence[RetentionRow]) -> Columns:
    """Return a column for each checkpoint, compared with the first one that has the item."""
    metrics = shown_metrics((row.tier, row.item, row.metric) for row in rows)
    shown = [row for row in rows if row.metric == metrics[row.tier, row.item]]
    first: dict[Key, str] = {}
    for row in shown:
        first.setdefault(key_of(row), row.earlier)
    against = [row for row in shown if row.earlier == first[key_of(row)]]
    labels = dict.fromkeys(label for row in rows for label in (row.earlier, row.later))
    columns = {}
    for label in labels:
        own = {key_of(row): row for row in against if row.later == label}
        start = {key_of(row): row for row in against if row.earlier == label}
        cells = {key: Cell(row.earlier_value) for key, row in start.items()}
        cells |= {k: Cell(row.value, flag=row.flag, delta=row.delta) for k, row in own.items()}
        columns[label] = cells
    return columns
