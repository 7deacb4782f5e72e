"""Makes the tables, figures and pages that do not show all that is scored."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from evaluation.dependencies.outdated import (
    are_figures_late,
    are_tables_late,
    is_comparison_late,
    is_front_late,
)
from evaluation.settings.plan import StagePlan
from evaluation.watching.runs import evaluation, last_words, run

Plans = Mapping[str, StagePlan]

PAGES = {
    "comparison of runs": ("comparison", is_comparison_late),
    "front page": ("front-page", is_front_late),
}
"""Pages of all stages together: the command that makes each, and whether it is late."""


def late_pages(plans: Plans, stages: Sequence[str]) -> list[str]:
    """Return what does not show all results.

    Args:
        plans: All stages by name.
        stages: Names of those that are watched.

    Returns:
        Names of stages and of PAGES, in the order of their making.
    """
    chosen = [plans[name] for name in stages]
    found = [plan.name for plan in chosen if are_tables_late(plan) or are_figures_late(plan)]
    return [*found, *(page for page, (_, is_late) in PAGES.items() if stages and is_late(plans))]


def make_pages(
    plans: Plans, stages: Sequence[str], configuration: Path, beat: Callable[[int], None]
) -> Iterator[tuple[str, str]]:
    """Make what is late, each in a process of its own.

    Args:
        plans: All stages by name.
        stages: Names of those that are watched.
        configuration: The user's file.
        beat: Called now and then with the id of the process that runs.

    Yields:
        Name and line of each stage, and of each page that could not be made.
    """
    late = late_pages(plans, stages)
    for plan in (plans[name] for name in stages if name in late):
        log = plan.results / "eval_logs" / "watch_pages.log"
        for number, step in enumerate(("tables", "figures")):
            command = evaluation(step, "--config", str(configuration), "--stage", plan.name)
            if run(command, log, beat, appending=number > 0):
                yield plan.name, f"{plan.name}: no {step}: {last_words(log)}"
                break
        else:
            yield plan.name, _line(plan)
    results = Path(next(iter(plans.values())).config.results)
    for page, (step, is_late) in PAGES.items():
        log = results / f"{step.replace('-', '_')}.log"
        if (
            stages
            and is_late(plans)
            and run(evaluation(step, "--config", str(configuration)), log, beat)
        ):
            yield page, f"no {page}: {last_words(log)}"


def _line(plan: StagePlan) -> str:
    """Return the stage's verdict as far as it goes, and where to read more."""
    from evaluation.reporting.terminal import advice_lines

    verdict = advice_lines(plan)[:1] if plan.stage.bridge is not None else []
    where = f"report: {plan.results / 'report.html'}"
    return f"{plan.name}: {'; '.join([*verdict, where])}"
