"""What each later checkpoint kept of each earlier one: `retention.csv`, `retention.tex`.

The checkpoints are the last one of each stage and the bridges, in the order of the stages. One is
earlier than another if this was trained from it, as the bridges say: two ablations of one stage, or
stages without bridges, are not. Two are compared over the items that both were scored on, whichever
stage's suite these are of: a bridge was scored on the suite of the stage that follows it. An overall
value is the mean over the items of every pair, so that a row compares like with like.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path

from evaluation.errors import ResultsError
from evaluation.files import write_text
from evaluation.reporting.tables.kept_items import Landmark, kept_rows, paired, shared_by_all
from evaluation.reporting.tables.side_by_side import Column, Key, heat_map, shown_metric
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


def landmarks(stages: Iterable[StageResults]) -> list[Landmark]:
    """One for each checkpoint, by its identity, in the order in which stages come to it."""
    found: dict[str, Landmark] = {}
    for stage in stages:
        scored = [] if stage.bridge is None else [(stage.bridge.results.label, stage.bridge)]
        if stage.steps:
            last = max(stage.steps)
            scored.append((f"{stage.plan.name}/{last}", stage.steps[last]))
        for label, one in scored:
            _add(found, label, one)
    return list(found.values())


def _add(found: dict[str, Landmark], label: str, scored: Scored) -> None:
    identity = _identity(scored)
    if label in {one.label for key, one in found.items() if key != identity}:
        label = f"{label} ({identity[:8]})"
    known = found.get(identity, Landmark(label, identity, ()))
    found[identity] = replace(known, sides=(*known.sides, scored.results))


def retention(stages: Iterable[StageResults]) -> list[RetentionRow]:
    """A row per pair of checkpoints, item and metric; tests are corrected over all of a pair."""
    read = cache(_read)
    found = list(stages)
    marks, begun = landmarks(found), _begun_from(found)
    pairs = [
        (earlier, later, paired(earlier, later, read))
        for earlier, later in product(marks, marks)
        if earlier.identity in _ancestors(later.identity, begun)
    ]
    shared = shared_by_all([both for _, _, both in pairs])
    return [
        row
        for earlier, later, both in pairs
        for row in kept_rows(earlier, later, both, shared, _deltas_of(found, earlier, later))
    ]


def _deltas_of(
    stages: Iterable[StageResults], earlier: Landmark, later: Landmark
) -> Sequence[DeltaRow]:
    """What a stage says of these two, if they are its bridge and its last step."""
    for stage in stages:
        if stage.bridge is not None and stage.steps and max(stage.steps) in stage.deltas:
            ends = _identity(stage.bridge), _identity(stage.steps[max(stage.steps)])
            if ends == (earlier.identity, later.identity):
                return stage.deltas[max(stage.steps)].deltas
    return ()


def _begun_from(stages: Sequence[StageResults]) -> dict[str, set[str]]:
    """By identity of a checkpoint those that its stage began with: as a stage's last, or as a bridge."""
    by_name = {stage.plan.name: stage for stage in stages}
    bridges = {name: _bridge_of(stage, by_name) for name, stage in by_name.items()}
    begun: dict[str, set[str]] = {}
    for name, stage in by_name.items():
        own, bridge = bridges[name], stage.plan.stage.bridge
        if own is None:
            continue
        if stage.steps:
            begun.setdefault(_identity(stage.steps[max(stage.steps)]), set()).add(own)
        before = None if bridge is None or bridge.stage is None else bridges.get(bridge.stage)
        if before is not None:
            begun.setdefault(own, set()).add(before)
    return begun


def _bridge_of(stage: StageResults, by_name: Mapping[str, StageResults]) -> str | None:
    """The identity of a stage's bridge, from the results of its own stage where it has none here yet."""
    if stage.bridge is not None:
        return _identity(stage.bridge)
    bridge = stage.plan.stage.bridge
    if bridge is None or bridge.stage is None or bridge.stage not in by_name:
        return None
    steps = by_name[bridge.stage].steps
    step = max(steps, default=None) if bridge.step is None else bridge.step
    return _identity(steps[step]) if step in steps else None


def _identity(scored: Scored) -> str:
    return scored.results.header.checkpoint_identity


def _ancestors(identity: str, begun: Mapping[str, set[str]]) -> set[str]:
    """All that it was trained from; never itself, though somebody may have made a ring of bridges."""
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
    """Writes both files into the folder of all results."""
    write_csv(folder / RETENTION, RETENTION_COLUMNS, [row.model_dump() for row in rows])
    write_text(folder / RETENTION_TEX, heat_map(_columns(rows), NOTE))


def first_of(rows: Iterable[RetentionRow]) -> dict[tuple[TierName, str], str]:
    """By tier and item the first checkpoint that was scored on it; rows come in this order."""
    first: dict[tuple[TierName, str], str] = {}
    for row in rows:
        first.setdefault((row.tier, row.item), row.earlier)
    return first


def _columns(rows: Sequence[RetentionRow]) -> list[Column]:
    """A column for each checkpoint, compared with the first one that has the item."""
    shown = [row for row in rows if row.metric == shown_metric(row.tier)]
    first = first_of(shown)
    against = [row for row in shown if row.earlier == first[row.tier, row.item]]
    labels = dict.fromkeys(label for row in rows for label in (row.earlier, row.later))
    return [
        Column(
            label=label,
            values=dict(_values(against, label, first)),
            flags={(r.tier, r.item): r.flag for r in against if r.later == label and r.flag},
            deltas={(r.tier, r.item): r.delta for r in against if r.later == label},
        )
        for label in labels
    ]


def _values(
    rows: Iterable[RetentionRow], label: str, first: Mapping[Key, str]
) -> Iterable[tuple[Key, Value]]:
    for row in rows:
        if row.later == label or first[row.tier, row.item] == label:
            value = row.value if row.later == label else row.earlier_value
            yield (
                (row.tier, row.item),
                Value(
                    tier=row.tier,
                    item=row.item,
                    group=None,
                    metric=row.metric,
                    value=value,
                    low=None,
                    high=None,
                    n=row.n,
                ),
            )
