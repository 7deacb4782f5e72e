"""What to do after a stage, in a row that is understood in ten seconds.

    what to do      one of five phrases
    gained          each objective to improve, the failed ones first, with what it is at worst
    must not fall   each objective to keep, likewise, with what is allowed
    doubt           what is still worse, what is as good, what would decide, what may be wrong

Numbers are in units of use: points, and per cent of perplexity.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from evaluation.errors import printable
from evaluation.reporting.judged_stage import JudgedStage
from evaluation.results.deltas_file import ObjectiveRow
from evaluation.settings.measured import TRUNCATED
from evaluation.settings.metric import Metric
from evaluation.settings.tiers import TIERS

MANY = 0.05
"""Share of truncated answers above which a row warns."""

LOSS = "nats per token"
"""Unit of losses, which are shown as per cent of perplexity."""

ORDER = ("not met", "undecided", "met")


@dataclass(frozen=True, kw_only=True)
class ObjectiveLine:
    """An objective in words, with its verdict."""

    text: str
    verdict: str


@dataclass(frozen=True, kw_only=True)
class DecisionRow:
    """A stage's row of the table of decisions; `path` is the checkpoint to take, if one is to be taken."""

    stage: str
    do: str
    about: str
    path: str
    gained: tuple[ObjectiveLine, ...]
    kept: tuple[ObjectiveLine, ...]
    doubt: tuple[str, ...]
    warnings: tuple[str, ...]


def decision_row(stage: JudgedStage) -> DecisionRow:
    """Return a stage's row."""
    do, about, path = _what_to_do(stage)
    lines = {
        want: tuple(
            ObjectiveLine(text=in_use(row), verdict=row.verdict)
            for row in sorted(stage.objectives, key=lambda row: ORDER.index(row.verdict))
            if row.want == want
        )
        for want in ("improve", "keep")
    }
    return DecisionRow(
        stage=stage.plan.name,
        do=do,
        about=about,
        path=path,
        gained=lines["improve"],
        kept=lines["keep"],
        doubt=tuple(_doubts(stage)),
        warnings=tuple(_warnings(stage)),
    )


def _what_to_do(stage: JudgedStage) -> tuple[str, str, str]:
    """Return what to do, what that is about, and the path of a checkpoint to take."""
    advice, count = stage.recommendation, len(stage.steps)
    if stage.plan.stage.bridge is None or not stage.plan.stage.objective:
        why = "no bridge" if stage.plan.stage.bridge is None else f"against {stage.against}"
        last = f"; the last of {count} is {stage.called(max(stage.steps))}" if count else ""
        return "No objective set", f"{why}{last}", ""
    if advice is None or advice.step is None:
        awaited = len(advice.awaited) if advice else 0
        return f"Wait: {f'{awaited} of {awaited}' if awaited else 'results'} missing", "", ""
    against, step = f"against {stage.against}", stage.called(advice.step)
    if advice.awaited:
        missing = f"{len(advice.awaited)} of {len({*advice.awaited, *stage.steps})} missing"
        return f"Wait: {missing}", f"{step} leads so far, {against}", ""
    among = f"best of {len(stage.deltas)}, {against}" if len(stage.deltas) > 1 else against
    if advice.verdict == "met":
        return f"Take {step}", among, advice.checkpoint or ""
    if advice.verdict == "undecided":
        return f"Can't tell; {step} leads", among, ""
    bridge = stage.deltas[advice.step].bridge.step if advice.step in stage.deltas else None
    name = stage.against if bridge is None else str(bridge)
    return f"Stay on {name}", f"the bridge, {stage.against}; {step} misses least", ""


def in_use(row: ObjectiveRow) -> str:
    """Return an objective's change in units of use, at worst, and with the margin beside it."""
    metric, worst = row.definition, row.low if row.definition.higher_is_better else row.high
    margin = _amount(metric, row.margin).lstrip("+")
    name = "perplexity" if metric.unit == LOSS else metric.words
    of = f" of {row.group}" if row.group else ""
    at_worst = f"no interval ({row.why})" if worst is None else f"at worst {_amount(metric, worst)}"
    limit = f"{'allowed' if row.want == 'keep' else 'wanted more than'} {margin}"
    if not row.margin:
        limit = "no loss allowed" if row.want == "keep" else "any gain wanted"
    return f"{name}{of} {_amount(metric, row.delta)}, {at_worst}, {limit}"


def _amount(metric: Metric, change: float) -> str:
    """Return a change with its sign and unit: points, per cent of perplexity, or the metric's own."""
    if metric.unit == "fraction":
        return f"{_two(100 * change)} points"
    if metric.unit == LOSS:
        return f"{_two(100 * math.expm1(change))} %"
    return f"{_two(change)} {metric.unit}"


def _two(number: float) -> str:
    """Return a signed number with two digits: `+0.4`, `-12`, `+0.03`."""
    size = abs(number)
    decimals = 1 if size < 0.0005 or 0.095 <= size < 9.95 else 0 if size >= 9.95 else 2
    return f"{number:+.{decimals if size >= 0.005 or size < 0.0005 else 3}f}".replace("-", "−")


def _doubts(stage: JudgedStage) -> Iterator[str]:
    """Yield what would decide, the largest significant loss, and the runner-up."""
    for row in stage.objectives:
        if row.verdict == "undecided":
            yield _what_decides(stage, row)
    rows = stage.rows
    worse = rows[rows["primary"] & (rows["flag"] == "worse")]
    if len(worse):
        size = (worse["delta"] / worse["mde"]).abs()
        largest = worse.loc[size.idxmax()] if size.notna().any() else worse.iloc[0]
        metric = TIERS[largest["tier"]].metric(largest["metric"])
        more = f", and {len(worse) - 1} more" if len(worse) > 1 else ""
        yield f"significantly worse: {largest['item']} {_amount(metric, largest['delta'])}{more}"
    advice = stage.recommendation
    if advice and advice.runner_up:
        near = next((e for e in advice.similar if e["step"] == advice.runner_up["step"]), None)
        how = advice.runner_up["why"]
        if near and advice.headline:
            metric = TIERS[advice.headline.tier].metric(advice.headline.metric)
            how = f"{_amount(metric, near['delta'])} from it, not significantly different"
        yield f"runner-up: {stage.called(advice.runner_up['step'])}, {how}"


def _what_decides(stage: JudgedStage, row: ObjectiveRow) -> str:
    """Say how many questions would decide an objective, if its splits have as many."""
    metric, tier, size = row.definition, TIERS[row.tier], row.margin or row.definition.worth
    name = row.group or tier.title
    own = stage.rows[(stage.rows["tier"] == row.tier) & stage.rows["item"].isin(row.items)]
    own = own[own["metric"] == metric.name]
    now = int(own["n"].sum())
    if not row.mde or not now:
        return f"{name}: {row.why}"
    needed, change = _rounded(now * (row.mde / size) ** 2), _amount(metric, size).lstrip("+")
    if needed <= now:
        return f"{name}: its {now:,} {tier.unit} would show {change}; the change is smaller"
    splits = [
        quality["in_split"]
        for quality in (stage.quality.rows if stage.quality else ())
        if (quality["tier"], quality["metric"]) == (row.tier, metric.name)
        and quality["item"] in row.items
    ]
    if splits and None not in splits and sum(filter(None, splits)) < needed:
        held = sum(filter(None, splits))
        return f"{name} cannot decide {change}: its splits have {held:,} of {needed:,} {tier.unit}"
    return f"{change} would need about {needed:,} {tier.unit} of {name}, now {now:,}"


def _rounded(count: float) -> int:
    """Return a number of questions with two digits, as a person plans with."""
    digits = max(0, math.floor(math.log10(max(count, 1))) - 1)
    return int(math.ceil(count / 10**digits) * 10**digits)


def _warnings(stage: JudgedStage) -> Iterator[str]:
    """Yield what may be wrong with the row."""
    if stage.advised_bridge is not None and stage.against not in (
        "the bridge",
        stage.advised_bridge,
    ):
        yield f"the bridge is {stage.against}, but {stage.advised_bridge} is recommended"
    if stage.plan.stage.open_ended and len(stage.deltas) > 1:
        yield "`steps` is no list: the verdict is for one look, not for one after each new checkpoint"
    rows = stage.rows
    cut = rows[(rows["metric"] == TRUNCATED.name) & (rows["value"] > MANY)]
    if len(cut):
        worst = cut.loc[cut["value"].idxmax()]
        yield f"{100 * worst['value']:.0f} % of answers to {worst['item']} are truncated"
    for (tier, item), own in rows[rows["flag"].notna()].groupby(["tier", "item"]):
        head = TIERS[str(tier)].headline
        flags = own.loc[own["metric"].str.match(f"{head}(_|$)"), "flag"]
        if TIERS[str(tier)].kind == "credit" and flags.nunique() > 1:
            yield f"strict and lenient readings of {item} disagree"
    if stage.chosen is not None and stage.chosen in stage.deltas:
        yield from stage.deltas[stage.chosen].notes
    yield from stage.problems[:3]
    if len(stage.problems) > 3:
        yield f"and {len(stage.problems) - 3} more"


def decision_lines(row: DecisionRow) -> list[str]:
    """Return a row as lines of text, what to do first; control characters are escaped."""
    lines = [f"{row.do}{f' ({row.about})' if row.about else ''}", *filter(None, [row.path])]
    for title, objectives in (("gained", row.gained), ("must not fall", row.kept)):
        lines += [f"{title}: {line.text}: {line.verdict}" for line in objectives]
    lines += [f"doubt: {text}" for text in row.doubt]
    return [*map(printable, [*lines, *(f"warning: {text}" for text in row.warnings)])]
