"""A stage's candidates by rank, each with a small forest plot of every objective.

The recommended one is first, the runner-up second, and so on by the rule that names both.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evaluation.bridge.decision import JudgedStep, headline_of
from evaluation.bridge.recommendation import in_order
from evaluation.bridge.verdicts import detectable_in_words, worse_in_words
from evaluation.reporting.tables.stage_results import StageResults
from evaluation.results.objective_rows import ObjectiveRow
from evaluation.results.stage_files import Recommendation
from evaluation.settings.tiers import TIERS

WIDTH = 100
"""Width of a small forest plot, in its own units."""

Range = tuple[float, float]
"""The changes at both ends of a forest plot; 0 is one of them, or between them."""


@dataclass(frozen=True, kw_only=True)
class ObjectiveHead:
    """Head of an objective's column; forest plots have no change at `zero`, and the margin at `mark`."""

    title: str
    aim: str
    zero: float
    mark: float | None


@dataclass(frozen=True, kw_only=True)
class ObjectiveCell:
    """The verdict on a candidate by one objective; places are in units of the small forest plot."""

    verdict: str
    change: str
    place: float
    low: float | None
    high: float | None


@dataclass(frozen=True, kw_only=True)
class CandidateRow:
    """A row of the table; `reason` says how it stands to the recommended one, `more` what explains that."""

    rank: int
    step: int
    label: str
    verdict: str
    is_chosen: bool
    cells: tuple[ObjectiveCell, ...]
    reason: str
    more: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class CandidateTable:
    """All candidates that were compared with the bridge; `groups` names the items of objectives' groups."""

    heads: tuple[ObjectiveHead, ...]
    rows: tuple[CandidateRow, ...]
    groups: tuple[str, ...]


def ranked(stage: StageResults) -> list[int]:
    """Return the candidates that were compared with the bridge, the recommended one first.

    Returns:
        Each of the others would be named without those before it; without an objective, they are in order.
    """
    steps = [_judged(stage, delta) for delta in sorted(stage.deltas)]
    if steps and all(step.objectives for step in steps):
        order = in_order(steps, headline_of(steps[0].objectives))
        advised = stage.recommendation.step if stage.recommendation else None
        steps = sorted(order, key=lambda step: step.step != advised)
    return [step.step for step in steps]


def _judged(stage: StageResults, step: int) -> JudgedStep:
    known = stage.judged(step)
    return JudgedStep(step=step, verdict=known.verdict or "undecided", objectives=known.objectives)


def candidate_table(stage: StageResults) -> CandidateTable | None:
    """Return the table of all candidates; None where there are no objectives, or nothing was compared."""
    order = ranked(stage)
    columns = [*zip(*(stage.judged(step).objectives for step in order), strict=True)]
    if not columns:
        return None
    ranges = [_range(column) for column in columns]
    return CandidateTable(
        heads=tuple(map(_head, (column[0] for column in columns), ranges)),
        rows=tuple(_row(stage, step, rank, ranges) for rank, step in enumerate(order, 1)),
        groups=tuple(_groups(column[0] for column in columns)),
    )


def _range(column: Sequence[ObjectiveRow]) -> Range:
    ends = [end for row in column for end in (row.delta, row.low, row.high) if end is not None]
    ends += [0.0, _margin(column[0])]
    return (min(ends), max(ends)) if any(ends) else (-1.0, 1.0)


def _margin(row: ObjectiveRow) -> float:
    """Return the change that separates what is wanted from what is not."""
    needed = row.margin if row.want == "improve" else -row.margin
    return needed if row.definition.higher_is_better else -needed


def _head(row: ObjectiveRow, span: Range) -> ObjectiveHead:
    metric = row.definition
    better = "" if metric.higher_is_better else "; lower is better"
    return ObjectiveHead(
        title=row.in_words,
        aim=f"change in {metric.change_unit}; {row.aim}{better}",
        zero=_place(0.0, span),
        mark=_place(_margin(row), span) if row.margin else None,
    )


def _place(value: float, span: Range) -> float:
    return round(WIDTH * (value - span[0]) / (span[1] - span[0]), 1)


def _row(stage: StageResults, step: int, rank: int, ranges: Sequence[Range]) -> CandidateRow:
    judged, chosen = stage.judged(step), stage.recommendation
    is_chosen = chosen is not None and step == chosen.step
    return CandidateRow(
        rank=rank,
        step=step,
        label=stage.plan.label(step),
        verdict=judged.verdict or "no objective",
        is_chosen=is_chosen,
        cells=tuple(map(_cell, judged.objectives, ranges)),
        reason=_reason(chosen, step) if chosen else "",
        more=tuple(_more(judged.objectives)),
    )


def _cell(row: ObjectiveRow, span: Range) -> ObjectiveCell:
    metric = row.definition
    bounds = None if row.low is None or row.high is None else (row.low, row.high)
    interval = f" {metric.interval(*bounds)}" if bounds else f"; {row.why}"
    return ObjectiveCell(
        verdict=row.verdict,
        change=f"{metric.number(row.delta, '+')}{interval}",
        place=_place(row.delta, span),
        low=_place(bounds[0], span) if bounds else None,
        high=_place(bounds[1], span) if bounds else None,
    )


def _reason(content: Recommendation, step: int) -> str:
    """Say how a candidate stands to the recommended one."""
    if step == content.step:
        return content.kind or ""
    for similar in content.similar:
        if similar.step == step:
            headline = content.headline and TIERS[content.headline.tier].metric(
                content.headline.metric
            )
            change = (
                f": {headline.change(similar.delta, similar.low, similar.high)}" if headline else ""
            )
            return f"not significantly different{change}"
    return next((other.why for other in content.others if other.step == step), "")


def _more(objectives: Sequence[ObjectiveRow]) -> Iterator[str]:
    """Yield what explains the verdicts: what was detectable, what got worse."""
    for row in objectives:
        if row.verdict == "undecided" and row.mde is not None:
            yield f"{row.in_words}: {detectable_in_words(row.definition, row.mde)}"
        if row.regressions:
            yield worse_in_words(row.want, row.regressions)


def _groups(rows: Iterator[ObjectiveRow]) -> Iterator[str]:
    """Yield a sentence on the items of each group that an objective names."""
    for name, items in {row.group: row.items for row in rows if row.group}.items():
        yield f"{name}: {', '.join(items)}"
