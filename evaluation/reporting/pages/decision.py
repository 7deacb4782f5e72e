"""The decision that heads a page: which checkpoint to take, against what, by how much, at what risk."""

from collections.abc import Iterator
from dataclasses import dataclass

from evaluation.reporting.pages.candidates import aim_in_words, objective_in_words
from evaluation.reporting.tables.stage_results import StageResults
from evaluation.results.deltas_file import ObjectiveRow
from evaluation.results.stage_files import Recommendation
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS


@dataclass(frozen=True, kw_only=True)
class StageDecision:
    """What a reader decides by; `path` is what to copy, empty where nothing is taken."""

    verdict: str
    sentence: str
    path: str
    changes: tuple[str, ...]
    risks: tuple[str, ...]
    runner_up: str | None
    open: tuple[str, ...]


def stage_decision(stage: StageResults, to_do: tuple[str, ...] = ()) -> StageDecision | None:
    """Return a stage's decision.

    Args:
        to_do: Sentences on what would decide an undecided objective.

    Returns:
        The decision; None as long as nothing is recommended.
    """
    content = stage.recommendation
    if content is None or content.candidate is None or content.candidate not in stage.deltas:
        return None
    objectives = stage.judged(content.candidate).objectives
    return StageDecision(
        verdict=content.verdict or "no objective",
        sentence=_sentence(stage, content, stage.plan.label(content.candidate)),
        path=content.checkpoint or "",
        changes=tuple(_change(row) for row in objectives),
        risks=tuple(_risks(objectives)),
        runner_up=_runner_up(content, stage.plan),
        open=to_do if content.verdict == "undecided" else (),
    )


def _sentence(stage: StageResults, content: Recommendation, named: str) -> str:
    against = stage.bridge.results.label if stage.bridge else "the bridge"
    wait = " so far" if content.provisional else ""
    much = _by_how_much(content)
    if content.verdict == "met":
        return f"Take {named}{wait}: it meets the objective against {against}{much}."
    if content.verdict == "undecided":
        return (
            f"Nothing is decided{wait}: {named} is the best candidate, but against {against} the "
            f"objective is neither met nor missed{much}."
        )
    return f"Do not go on{wait}: against {against} no checkpoint meets the objective; {named} misses it least{much}."


def _by_how_much(content: Recommendation) -> str:
    """Return the change of the headline, with its interval, in brackets."""
    headline = content.headline
    if headline is None:
        return ""
    metric = TIERS[headline.tier].metric(headline.metric)
    of = f" of {headline.group}" if headline.group else ""
    return f" ({metric.words}{of} {metric.change(headline.delta, headline.low, headline.high)})"


def _change(row: ObjectiveRow) -> str:
    """Say by how much an objective's metric changed, and whether that meets it."""
    change = row.definition.change(row.delta, row.low, row.high)
    return f"{objective_in_words(row)}: {change} ({aim_in_words(row)} is wanted: {row.verdict})"


def _risks(objectives: tuple[ObjectiveRow, ...]) -> Iterator[str]:
    """Yield what an objective may lose at the worse end of its interval, and what got worse."""
    for row in objectives:
        metric = row.definition
        worst = row.low if metric.higher_is_better else row.high
        if worst is not None:
            loss = -worst if metric.higher_is_better else worst
            of = f" of {row.group}" if row.group else ""
            if loss > 0:
                yield f"{metric.words}{of} may be worse by as much as {metric.size(loss)}"
        if row.regressions:
            yield f"significantly worse: {', '.join(row.regressions)}"


def _runner_up(content: Recommendation, plan: StagePlan) -> str | None:
    runner_up = content.runner_up
    return None if runner_up is None else f"{plan.label(runner_up.candidate)}, {runner_up.why}"
