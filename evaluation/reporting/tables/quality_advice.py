"""Advice for undecided objectives: which tasks are too small, and how many questions they need."""

import math
from collections.abc import Iterator, Sequence

from evaluation.bridge.estimate import POWER
from evaluation.reporting.tables.stage_results import StageResults
from evaluation.results.deltas_file import ObjectiveRow
from evaluation.results.stage_files import QualityRow
from evaluation.settings.candidates import steps_among
from evaluation.settings.tiers import TIERS, TierName
from evaluation.wording import first_few

NAMED = 6
"""Items that a sentence names."""


def advice_of(found: StageResults, rows: Sequence[QualityRow]) -> Iterator[str]:
    """Yield advice on undecided objectives of the recommended step, or else of the last step.

    Args:
        found: The stage's results.
        rows: The stage's rows of task quality.

    Yields:
        One sentence an objective.
    """
    advised = found.recommendation.candidate if found.recommendation else None
    step = advised if advised in found.deltas else max(steps_among(found.deltas), default=None)
    if step is None:
        return
    for objective in found.deltas[step].objectives:
        if objective.verdict == "undecided":
            group = found.plan.suite.groups.get(objective.group or "")
            others = group.also if group and group.tier == objective.tier else ()
            yield from _of_objective(objective, rows, others)


def _of_objective(
    objective: ObjectiveRow, rows: Sequence[QualityRow], others: Sequence[TierName]
) -> Iterator[str]:
    """Yield a sentence for an objective; its items may be of `others` than its own tier, too."""
    tier, metric = TIERS[objective.tier], objective.definition
    metrics = {(objective.tier, metric.name)}
    metrics |= {(name, counted) for name in others for counted in TIERS[name].counted}
    own = [row for row in rows if (row.tier, row.metric) in metrics and row.item in objective.items]
    if not own:
        return
    difference = objective.margin or min(row.difference for row in own)
    group = f" of {objective.group}" if objective.group else ""
    text = f"{objective.tier}: {metric.words}{group} is undecided"
    count = len(objective.items) if others else len(own)
    units = " and ".join(TIERS[name].unit for name in (*others, objective.tier))
    if objective.mde is not None:
        text += f"; {_times(objective, difference, count, units)}"
    small = [row for row in own if row.too_small]
    yield f"{text}{_small(small, count, tier.item) if small else ''}"


def _times(objective: ObjectiveRow, difference: float, count: int, units: str) -> str:
    """Say how many times as many units the mean takes: its error falls with their root."""
    assert objective.mde is not None
    times = (objective.mde / difference) ** 2
    size = objective.definition.size(difference)
    item = TIERS[objective.tier].item
    where = f"the mean of {count} {_plural(item, count)}" if count > 1 else "it"
    if times <= 1:
        return f"the {units} of {where} show a difference of {size} with probability {POWER:g}"
    rounded = f"{times:.1f}" if times < 10 else f"{math.ceil(times)}"
    return (
        f"a difference of {size} in {where} takes {rounded} times as many {units} "
        f"(probability {POWER:g})"
    )


def _small(rows: Sequence[QualityRow], of: int, item: str) -> str:
    """List the smallest first, as a share of what they need."""
    named = []
    for row in sorted(rows, key=lambda row: row.n / (row.needed or 1)):
        more = "" if row.in_split is None else f", its split has {row.in_split:,}"
        if row.in_split is not None and row.in_split <= row.n:
            more = ", its split has no more"
        named.append(f"{row.item} ({row.n:,} of {row.needed:,}{more})")
    return f". Too small alone: {len(rows)} of {of} {_plural(item, of)}: {first_few(named, NAMED)}"


def _plural(item: str, count: int) -> str:
    if count == 1:
        return item
    return f"{item[:-1]}ies" if item.endswith("y") else f"{item}s"
