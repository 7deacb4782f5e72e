"""How much each slice and task of a stage can tell, and what would decide what is undecided.

The formulas are in `bridge.signal_noise` and `bridge.power`. Series are those of the stage's checkpoints; questions are
counted by the paired differences of the last checkpoint with the bridge, or else with the one before.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from evaluation import protocol
from evaluation.bridge.power import needed_units
from evaluation.bridge.signal_noise import agreement, monotonicity, neighbour_noise, trend
from evaluation.bridge.statistics import ALPHA, POWER
from evaluation.errors import ResultsError
from evaluation.reporting.tables.item_variance import paired_items, standard_error
from evaluation.reporting.tables.quality_advice import advice_of
from evaluation.reporting.tables.stage_results import Scored, StageResults
from evaluation.results.columns import write_csv
from evaluation.results.files import write_model
from evaluation.results.kinds import Item, NatsItem
from evaluation.results.read import TierResults
from evaluation.results.stage_files import (
    QUALITY,
    QUALITY_COLUMNS,
    QUALITY_TABLE,
    QualityRow,
    TaskQuality,
)
from evaluation.results.tier_files import Counts
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS, Metric, Tier

Points = Mapping[int, float]
"""Values by step."""


class Sides(NamedTuple):
    """The last checkpoint that has a tier, and what it is paired with."""

    ours: TierResults
    theirs: TierResults | None
    called: str | None


def write_quality(found: StageResults) -> TaskQuality:
    """Writes both files, and returns what is in them."""
    quality = stage_quality(found)
    rows = [row.model_dump() for row in quality.rows]
    write_csv(found.plan.results / QUALITY_TABLE, QUALITY_COLUMNS, rows)
    write_model(found.plan.results / QUALITY, TaskQuality, quality.model_dump(mode="json"))
    return quality


def stage_quality(found: StageResults) -> TaskQuality:
    """Of all tiers whose items are slices or tasks; rates of few prompts are none."""
    tiers = [TIERS[name] for name in found.plan.tiers if not TIERS[name].rates]
    rows = [row for tier in tiers for row in _tier_rows(found, tier)]
    return TaskQuality(
        stage=found.plan.name,
        protocol=protocol.REPORT,
        alpha=round(ALPHA, 10),
        power=POWER,
        advice=tuple(advice_of(found, rows)),
        rows=tuple(rows),
    )


def _tier_rows(found: StageResults, tier: Tier) -> Iterator[QualityRow]:
    sides, points = _sides(found, tier), _points(found, tier)
    if sides is None:
        return
    for name, item in sides.ours.items.items():
        series = {one.name: points.get((name, one.name), {}) for one in _told_by(tier)}
        for metric in _told_by(tier):
            if series[metric.name]:
                yield _row(found.plan, sides, metric, name, item, series)


def _told_by(tier: Tier) -> tuple[Metric, ...]:
    return (tier.head, *tier.companions[:1])


def _sides(found: StageResults, tier: Tier) -> Sides | None:
    """Read again with their items; None where no step has any."""
    steps = [step for step, one in found.steps.items() if tier.name in one.results.tiers]
    if not steps:
        return None
    last = max(steps)
    ours = _read(found.steps[last], tier)
    if ours is None:
        return None
    if found.bridge is not None and tier.name in found.bridge.results.tiers:
        return Sides(ours, _read(found.bridge, tier), "bridge")
    if len(steps) > 1:
        before = sorted(steps)[-2]
        return Sides(ours, _read(found.steps[before], tier), f"step {before}")
    return Sides(ours, None, None)


def _read(scored: Scored, tier: Tier) -> TierResults | None:
    try:
        return scored.tier(tier.name)
    except ResultsError:  # damaged since it was read, which the next run tells
        return None


def _points(found: StageResults, tier: Tier) -> Mapping[tuple[str, str], Points]:
    """By item and metric."""
    points: dict[tuple[str, str], dict[int, float]] = {}
    for step, scored in sorted(found.steps.items()):
        for value in scored.values:
            if value.tier == tier.name:
                points.setdefault((value.item, value.metric), {})[step] = value.value
    return points


def _row(
    plan: StagePlan,
    sides: Sides,
    metric: Metric,
    name: str,
    item: Item,
    series: Mapping[str, Points],
) -> QualityRow:
    points = series[metric.name]
    sign = 1 if metric.higher_is_better else -1
    steps, gains = list(points), [sign * value for value in points.values()]
    noise, signal = neighbour_noise(steps, gains), trend(steps, gains)
    value = points[max(points)]
    other = sides.theirs.items.get(name) if sides.theirs is not None else None
    pair = None if other is None else paired_items(item, other, metric.name)
    difference = difference_to_decide(plan, sides.ours.tier, item.group, metric)
    needed = None if pair is None else needed_units(pair.variance, difference, pair.turning)
    n = pair.n if pair else _size(item)
    return QualityRow(
        stage=plan.name,
        tier=sides.ours.tier.name,
        item=name,
        group=item.group,
        metric=metric.name,
        checkpoints=len(points),
        value=value,
        above_chance=_above_chance(item, metric, value),
        monotonicity=monotonicity(steps, gains),
        noise=noise,
        signal=signal,
        signal_to_noise=_ratio(signal, noise, gains),
        agreement=_agreement(sides.ours.tier, metric, series),
        n=n,
        compared_with=sides.called if pair else None,
        difference=difference,
        needed=needed,
        too_small=None if needed is None else n < needed,
        in_split=_in_split(item),
    )


def _ratio(signal: float | None, noise: float | None, gains: Sequence[float]) -> float | None:
    """Unknown where checkpoints lie on a line to the last digits, of which rounding is the scatter."""
    if signal is None or noise is None or noise <= 1e-9 * max(map(abs, gains)):
        return None
    return abs(signal) / noise


def difference_to_decide(plan: StagePlan, tier: Tier, group: str | None, metric: Metric) -> float:
    """The smallest margin above zero of an aim at the item, or else what is worth telling."""
    margins = [
        aim.margin
        for aim in plan.stage.objective
        if aim.tier == tier.name and aim.group in (None, group) and aim.margin > 0
        if aim.decided_on.name == metric.name
    ]
    return min(margins, default=metric.worth)


def _above_chance(item: Item, metric: Metric, value: float) -> float | None:
    chance = getattr(item, "chance", None)
    error = standard_error(item, metric.name)
    return None if chance is None or not error else float((value - chance) / error)


def _agreement(tier: Tier, metric: Metric, series: Mapping[str, Points]) -> float | None:
    """Of the headline with the first companion; both have values at the steps that count."""
    if metric.companion or not tier.companions:
        return None
    other = tier.companions[0]
    sign = 1 if metric.higher_is_better == other.higher_is_better else -1
    mine, theirs = series[metric.name], series[other.name]
    steps = [step for step in mine if step in theirs]
    return agreement([mine[step] for step in steps], [sign * theirs[step] for step in steps])


def _size(item: Item) -> int:
    counts = getattr(item.entry, "items", None)
    return counts.used if isinstance(counts, Counts) else 0


def _in_split(item: Item) -> int | None:
    """By what was left out at prefill: questions beyond the limit, or blocks where the data ended."""
    counts = getattr(item.entry, "items", None)
    if not isinstance(counts, Counts):
        return None
    if isinstance(item, NatsItem):
        return counts.used if counts.left_out else None
    return counts.asked
