"""The decision that heads a page: which checkpoint to take, against what, by how much, at what risk."""

import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import takewhile

from evaluation.errors import ResultsError
from evaluation.reporting.headlines import steps_in_words
from evaluation.reporting.tables.stage_results import StageResults
from evaluation.results.objective_rows import ObjectiveRow
from evaluation.results.stage_files import (
    QUALITY,
    Headline,
    Recommendation,
    SimilarStep,
    TaskQuality,
)
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS

NO_RISK = "even at the worse end of its interval, no objective is worse than at the bridge"


@dataclass(frozen=True, kw_only=True)
class StageDecision:
    """What a reader decides by; `path` is what to copy, empty where nothing is taken.

    `place` says which other stages there are beside this one, in a few words.
    """

    place: str = ""
    verdict: str
    sentence: str
    path: str
    changes: tuple[str, ...]
    risks: tuple[str, ...]
    recipe: tuple[str, ...]
    other_bridge: str | None = None
    runner_up: str | None
    intervals: str
    open: tuple[str, ...]


def stage_decision(stage: StageResults, to_do: tuple[str, ...] = ()) -> StageDecision | None:
    """Return a stage's decision; None as long as nothing is recommended.

    Args:
        to_do: Sentences on what would decide an undecided objective.
    """
    content = stage.recommendation
    if content is None or content.step is None or content.step not in stage.deltas:
        return None
    objectives = stage.judged(content.step).objectives
    gone = ("its folder no longer exists",) if content.step in stage.deleted else ()
    return StageDecision(
        verdict=content.verdict or "no objective",
        sentence=_sentence(stage, content, stage.plan.label(content.step)),
        path=content.checkpoint or "",
        changes=tuple(_change(row) for row in objectives),
        risks=(*gone, *(list(_risks(objectives)) or [NO_RISK])),
        recipe=tuple(_of_recipe(objectives)),
        runner_up=_runner_up(content, stage.plan),
        intervals=_intervals(len(stage.deltas) + len(content.awaited)),
        open=to_do if content.verdict == "undecided" else (),
    )


def stage_decisions(stages: Mapping[str, StageResults]) -> dict[str, StageDecision]:
    """Return the decision of each stage that has one, the latest first: it is what comes next."""
    decisions = {
        name: stage_decision(stages[name], _to_do(stages[name])) for name in reversed([*stages])
    }
    shown = {name: decision for name, decision in decisions.items() if decision is not None}
    return {
        name: replace(
            decision,
            place=_place(stages[name], stages, is_first=name == next(iter(shown))),
            other_bridge=_other_bridge(stages[name], stages),
            open=(*decision.open, *_comparisons(stages[name], stages)),
        )
        for name, decision in shown.items()
    }


def _to_do(stage: StageResults) -> tuple[str, ...]:
    """Return what would decide an undecided stage."""
    content = stage.recommendation
    if content is None or content.verdict != "undecided":
        return ()
    try:
        return TaskQuality.read(stage.plan.results / QUALITY).advice
    except ResultsError as error:
        return (str(error),)


def _place(stage: StageResults, stages: Mapping[str, StageResults], *, is_first: bool) -> str:
    """Say that a stage is the latest, and which others began at the same checkpoint."""
    beside = [other.plan.name for other in _rivals(stage, stages.values())]
    words = ["the latest stage"] if is_first else []
    words += [f"beside {' and '.join(beside)}, with the same bridge"] if beside else []
    return "; ".join(words)


def _rivals(stage: StageResults, others: Iterable[StageResults]) -> Iterator[StageResults]:
    """Yield the other stages of the same bridge from which a step is chosen, too."""
    if stage.bridge is None or not stage.chosen:
        return
    for other in others:
        is_same = other.bridge and other.bridge.results.label == stage.bridge.results.label
        if other is not stage and other.chosen and is_same:
            yield other


def _comparisons(stage: StageResults, stages: Mapping[str, StageResults]) -> Iterator[str]:
    """Name the command that compares a stage with an earlier one of the same bridge."""
    earlier = takewhile(lambda other: other is not stage, stages.values())
    for other in _rivals(stage, earlier):
        ours, theirs = (s.plan.step_folder(s.chosen) for s in (stage, other) if s.chosen)
        yield (
            f"{stage.plan.name} and {other.plan.name} have the same bridge, and are not compared "
            f"here: python -m evaluation compare {shlex.quote(str(ours))} {shlex.quote(str(theirs))}"
        )


def _other_bridge(stage: StageResults, stages: Mapping[str, StageResults]) -> str | None:
    """Say that a stage is compared with another checkpoint than its earlier stage recommends."""
    bridge = stage.plan.stage.bridge
    earlier = stages.get(bridge.stage or "") if bridge else None
    if stage.bridge is None or earlier is None or earlier.recommendation is None:
        return None
    advised, label = earlier.recommendation.step, stage.bridge.results.label
    is_recommended = advised is not None and earlier.recommendation.verdict == "met"
    if advised is None or not is_recommended or label == f"{earlier.plan.name}/{advised}":
        return None
    name = f"{earlier.plan.label(advised)} of {earlier.plan.name}"
    return (
        f"all changes are against {label}, though {name} is recommended; how this stage would "
        "go on from there is not measured"
    )


def _sentence(stage: StageResults, content: Recommendation, named: str) -> str:
    against = stage.bridge.results.label if stage.bridge else "the bridge"
    wait = " so far" if content.provisional else ""
    much = _by_how_much(stage, content)
    if content.verdict == "met":
        others = len(stage.deltas) > 1
        most = ", and no other that meets it gains more" if others else ""
        return f"Take {named}{wait}: it meets the objective against {against}{much}{most}."
    if content.verdict == "undecided":
        return (
            f"Nothing is decided{wait}: {named} is the best candidate, but against {against} the "
            f"objective is neither met nor missed{much}."
        )
    return (
        f"Do not go on{wait}: against {against} no checkpoint meets the objective; {named} misses it "
        f"least{much}."
    )


def _by_how_much(stage: StageResults, content: Recommendation) -> str:
    """Return the changes of the objectives that give the verdict, with their intervals, in brackets.

    Where the objective is met, it is the headline's; else those of all objectives with the verdict.
    """
    headline = content.headline
    assert content.step is not None
    open_rows = [
        row
        for row in stage.judged(content.step).objectives
        if content.verdict != "met" and row.verdict == content.verdict
    ]
    if open_rows:
        changes = (
            f"{_named(row)} {row.definition.change(row.delta, row.low, row.high)}"
            for row in open_rows
        )
        return f" ({', '.join(changes)})"
    return "" if headline is None else f" ({_headline_change(headline, headline)})"


def _headline_change(headline: Headline, change: Headline | SimilarStep) -> str:
    metric = TIERS[headline.tier].metric(headline.metric)
    of = f" of {headline.group}" if headline.group else ""
    return f"{metric.words}{of} {metric.change(change.delta, change.low, change.high)}"


def _change(row: ObjectiveRow) -> str:
    """Say by how much an objective's metric changed, and whether that meets it."""
    change = row.definition.change(row.delta, row.low, row.high)
    return f"{row.in_words}: {change} ({row.aim}: {row.verdict})"


def _risks(objectives: tuple[ObjectiveRow, ...]) -> Iterator[str]:
    """Yield what an objective may lose at the worse end of its interval, and what got worse."""
    for row in objectives:
        metric = row.definition
        worst = row.low if metric.higher_is_better else row.high
        if worst is not None:
            loss = -worst if metric.higher_is_better else worst
            if loss > 0:
                yield f"{_named(row)} may be worse by as much as {metric.change(loss, sign='')}"
        if row.regressions:
            yield f"significantly worse: {', '.join(row.regressions)}"


def _of_recipe(objectives: tuple[ObjectiveRow, ...]) -> Iterator[str]:
    """Say what the noise between checkpoints leaves of the verdicts, which are about weights."""
    parts = [
        f"{_named(row)} {row.definition.change(row.delta, row.recipe_low, row.recipe_high)}"
        for row in objectives
        if row.recipe_noise is not None
    ]
    if parts:
        yield (
            "the verdicts above are about these weights. With the noise between checkpoints: "
            f"{', '.join(parts)}"
        )


def _named(row: ObjectiveRow) -> str:
    return row.definition.words + (f" of {row.group}" if row.group else "")


def _intervals(count: int) -> str:
    """Say what the intervals hold for."""
    if count == 1:
        return "95 % intervals hold for this one checkpoint"
    return (
        f"95 % intervals of the changes hold for all {count} checkpoints at once, as one was chosen "
        "among them"
    )


def _runner_up(content: Recommendation, plan: StagePlan) -> str | None:
    """Name the runner-up with its difference from the chosen one, and how many others are as good."""
    runner_up, headline = content.runner_up, content.headline
    if runner_up is None:
        return None
    text = f"{plan.label(runner_up.step)}, {runner_up.why}"
    similar = {entry.step: entry for entry in content.similar}
    if headline is not None and (entry := similar.pop(runner_up.step, None)):
        text += f" ({_headline_change(headline, entry)} from the one to take)"
    return f"{text}; likewise {steps_in_words([*similar])}" if similar else text
