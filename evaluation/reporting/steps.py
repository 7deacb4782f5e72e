"""Steps of the workflow that write tables, figures, run comparison and front page, with records."""

from collections.abc import Mapping
from pathlib import Path

from evaluation.bridge.write import write_stage
from evaluation.checkpoints.subjects import stage_candidates
from evaluation.command_hints import evaluation
from evaluation.dependencies.outdated import Outdated, tables_records
from evaluation.dependencies.steps import (
    COMPARISON,
    FIGURES,
    FRONT,
    STEP_DELTAS,
    TABLES,
    comparison_key,
    figures_key,
    front_key,
    stage_records,
    tables_key,
)
from evaluation.errors import BridgeError
from evaluation.records import Record, read_record, record_path, write_record
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
from evaluation.settings.candidates import Candidate
from evaluation.settings.plan import StagePlan


@reading_once()
def make_tables(plan: StagePlan) -> Record:
    """Write tables, recommendation and report of the results that exist.

    Returns:
        The record of the step, with its files.
    """
    steps = stage_candidates(plan)
    key = tables_key(plan, steps, stage_records(plan, steps))
    if plan.stage.bridge is None:
        _remove_bridge_files(plan, steps)
    else:
        write_stage(plan, [step for step in steps if _is_compared(plan, step)], steps)
    found = read_stage(plan, steps)
    write_tables(found)
    write_page(plan.results / PAGE, stage_page(found, write_quality(found)))
    files = [plan.results / name for name in stage_outputs(plan)]
    return write_record(plan.results, TABLES, key, files, about={"candidates": list(steps)})


def make_figures(plan: StagePlan) -> Record:
    """Write a stage's figures from its tables.

    Returns:
        The record of the step, with its files.

    Raises:
        BridgeError: When the stage has no tables yet.
    """
    tables = read_record(plan.results, TABLES)
    if tables is None:
        again = evaluation(f"tables --stage {plan.name}")
        raise BridgeError(f"{plan.results}: no tables yet; run `{again}`")
    return write_record(plan.results, FIGURES, figures_key(tables), write_figures(plan))


@reading_once()
def make_comparison(plans: Mapping[str, StagePlan]) -> Record:
    """Compare this run with those that the configuration names.

    Args:
        plans: The plan of each stage of this run, by name.

    Returns:
        The record of the step; it names which runs could not be compared, as files and pages do.
    """
    config = next(iter(plans.values())).config
    results, key = Path(config.results), comparison_key(tables_records(plans), config.runs)
    files, errors = write_configured(plans)
    error = "; ".join(errors) or None
    return write_record(results, COMPARISON, key, files, error=error)


@reading_once()
def make_front_page(plans: Mapping[str, StagePlan]) -> Path:
    """Write the page of all stages, and the comparison again if it is outdated.

    Args:
        plans: The plan of each stage of this run, by name.

    Returns:
        Path of the page.
    """
    config = next(iter(plans.values())).config
    results = Path(config.results)
    if not config.runs:
        record_path(results, COMPARISON).unlink(missing_ok=True)
        for name in COMPARISON_FILES:
            (results / name).unlink(missing_ok=True)
    elif Outdated(plans, as_made=True).comparison():
        make_comparison(plans)
    key = front_key(tables_records(plans), read_record(results, COMPARISON))
    page = write_front_page(plans)
    write_record(results, FRONT, key, [results / name for name in FRONT_FILES])
    return page


def _is_compared(plan: StagePlan, step: Candidate) -> bool:
    record = read_record(plan.step_folder(step), STEP_DELTAS)
    return record is not None and record.error is None


def _remove_bridge_files(plan: StagePlan, steps: tuple[Candidate, ...]) -> None:
    """Remove the files that were written when the stage had a bridge, which are outdated."""
    for name in BRIDGE_FILES:
        (plan.results / name).unlink(missing_ok=True)
    for step in steps:
        (plan.step_folder(step) / DELTAS).unlink(missing_ok=True)
