"""What a run of the workflow ends with on the terminal."""

from collections.abc import Sequence

from evaluation.checkpoints.subjects import stage_steps
from evaluation.reporting.status import failures
from evaluation.reporting.terminal import advice_lines
from evaluation.settings.plan import StagePlan


def ending(plans: Sequence[StagePlan]) -> str:
    """What a run ends with: each stage's recommendation and where to read more."""
    return "\n".join(line for plan in plans for line in _ending(plan))


def _ending(plan: StagePlan) -> list[str]:
    lines = ["no bridge, so no recommendation"] if plan.stage.bridge is None else advice_lines(plan)
    first, *others = [*lines, f"report: {plan.results / 'report.html'}"]
    return [f"{plan.name}: {first}", *(f"  {line}" for line in others)]


def failing(plans: Sequence[StagePlan]) -> str:
    """The last sentences of the jobs that failed, with their logs; empty if none says why."""
    lines = [f"{plan.name} {said}" for plan in plans for said in failures(plan, stage_steps(plan))]
    return "\n".join(["What failed:", *lines]) if lines else ""
