"""Steps of the workflow that write tables, figures, run comparison and front page."""

from evaluation.bridge.write import write_stage
from evaluation.checkpoints.subjects import stage_steps
from evaluation.dependencies.making import Made
from evaluation.dependencies.places import Place
from evaluation.dependencies.steps import COMPARISON, STEP_DELTAS
from evaluation.records import read_record, record_path
from evaluation.reporting.comparison import write_configured
from evaluation.reporting.pages.front_page import write_front_page
from evaluation.reporting.pages.page import write_page
from evaluation.reporting.pages.stage_page import stage_page
from evaluation.reporting.tables.figures import write_figures
from evaluation.reporting.tables.stage_results import read_stage
from evaluation.reporting.tables.summary import write_tables
from evaluation.reporting.tables.task_quality import write_quality
from evaluation.results.comparison_file import COMPARISON_FILES
from evaluation.results.deltas_file import DELTAS
from evaluation.results.read import reading_once
from evaluation.results.stage_files import BRIDGE_FILES, FRONT_FILES, PAGE, stage_outputs
from evaluation.settings.plan import StagePlan


@reading_once()
def make_tables(place: Place) -> Made:
    """Write tables, recommendation and report of the results that exist."""
    plan = place.plan
    steps = stage_steps(plan)
    if plan.stage.bridge is None:
        _remove_bridge_files(plan, steps)
    else:
        write_stage(plan, [step for step in steps if _is_compared(plan, step)], steps)
    stage = read_stage(plan, steps)
    write_tables(stage)
    write_page(plan.results / PAGE, stage_page(stage, write_quality(stage)))
    files = [plan.results / name for name in stage_outputs(plan)]
    return Made(files, about={"steps": list(steps)})


def make_figures(place: Place) -> Made:
    """Write a stage's figures from its tables."""
    return Made(write_figures(place.plan))


@reading_once()
def make_comparison(place: Place) -> Made:
    """Compare this run with those that the configuration names; the error names those that cannot be."""
    files, errors = write_configured(_plans(place))
    return Made(files, error="; ".join(errors) or None)


@reading_once()
def make_front_page(place: Place) -> Made:
    """Write the page of all stages; remove the page of other runs if the configuration names none."""
    if not place.plan.config.runs:
        record_path(place.folder, COMPARISON).unlink(missing_ok=True)
        for name in COMPARISON_FILES:
            (place.folder / name).unlink(missing_ok=True)
    write_front_page(_plans(place))
    return Made([place.folder / name for name in FRONT_FILES])


def _plans(place: Place) -> dict[str, StagePlan]:
    return {plan.name: plan for plan in place.plans}


def _is_compared(plan: StagePlan, step: int) -> bool:
    record = read_record(plan.step_folder(step), STEP_DELTAS)
    return record is not None and record.error is None


def _remove_bridge_files(plan: StagePlan, steps: tuple[int, ...]) -> None:
    """Remove the files that were written when the stage had a bridge, which are outdated."""
    for name in BRIDGE_FILES:
        (plan.results / name).unlink(missing_ok=True)
    for step in steps:
        (plan.step_folder(step) / DELTAS).unlink(missing_ok=True)
