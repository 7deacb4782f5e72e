"""Everything that shows results, made from them at every call: it has no key, and needs no record.

    of a stage    bridge_deltas.json of each step, recommendation, summary, task quality, figures, page
    of a run      the comparison with the configured `runs`, the first page

Only files whose content changes are written. What failed or is missing is named on the pages.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from evaluation.bridge.write import ComparedStep, write_deltas, write_stage
from evaluation.checkpoints.subjects import stage_steps
from evaluation.errors import EvaluationError
from evaluation.files import write_text
from evaluation.reporting.comparison import compare_configured
from evaluation.reporting.figures import write_figures
from evaluation.reporting.judged_stage import read_stage as judged_stage
from evaluation.reporting.page import front_page, overview, stage_page
from evaluation.reporting.table import stage_rows
from evaluation.reporting.tables.task_quality import write_quality
from evaluation.results.deltas_file import DELTAS, ObjectiveVerdict
from evaluation.results.stage_files import OVERVIEW, PAGE, RECOMMENDATION
from evaluation.results.table import write_rows
from evaluation.results.tier_files import tiers_in
from evaluation.settings.plan import StagePlan

Plans = Mapping[str, StagePlan]


def report_stage(plan: StagePlan, plans: Plans, jobs: Sequence[str] = ()) -> list[str]:
    """Make what shows a stage; return a sentence for each step that cannot be compared with the bridge.

    Args:
        jobs: Sentences on jobs that failed.

    Raises:
        CheckpointError: The stage has no checkpoint.
    """
    steps, failed = stage_steps(plan), list[str]()
    compared, verdicts = dict[int, ComparedStep](), dict[int, ObjectiveVerdict | None]()
    if plan.stage.bridge is None:
        _remove([plan.results / RECOMMENDATION])
        _remove([plan.step_folder(step) / DELTAS for step in steps])
    else:
        compared, failed = _compare(plan, steps)
        advice = write_stage(plan, compared, steps, failed)
        verdicts = {judged.step: judged.verdict for judged in advice.verdicts}
    deltas = {step: content for step, (content, _) in compared.items()}
    rows, damaged = stage_rows(plan, plans, steps, deltas, verdicts)
    write_rows(plan.results, rows)
    write_quality(plan, rows)
    show_stage(plan, plans, [*jobs, *failed, *damaged])
    return failed


def show_stage(plan: StagePlan, plans: Plans, problems: Sequence[str]) -> None:
    """Make a stage's page and figures from its files, with sentences on what is wrong."""
    judged = judged_stage(plan, plans, problems)
    write_text(plan.results / PAGE, stage_page(judged))
    write_figures(judged)


def _compare(plan: StagePlan, steps: Sequence[int]) -> tuple[dict[int, ComparedStep], list[str]]:
    """Write the deltas of scored steps; return them, and a sentence for each other scored step."""
    compared, failed = dict[int, ComparedStep](), list[str]()
    for step in steps:
        folder = plan.step_folder(step)
        try:
            if tiers_in(folder) and tiers_in(plan.bridge_folder):
                compared[step] = write_deltas(plan, step)
                continue
        except EvaluationError as error:
            failed.append(f"{plan.label(step)}: {error}")
        _remove([folder / DELTAS])
    return compared, failed


def report_run(plans: Plans, jobs: Mapping[str, Sequence[str]] = MappingProxyType({})) -> list[str]:
    """Make what shows all stages; return a sentence for each configured run that cannot be compared.

    Args:
        jobs: Sentences on jobs that failed, by stage.
    """
    results = Path(next(iter(plans.values())).config.results)
    better, failed = compare_configured(plans)
    stages = {name: judged_stage(plan, plans, jobs.get(name, ())) for name, plan in plans.items()}
    write_text(results / PAGE, front_page(stages, [*failed, *better]))
    write_text(results / OVERVIEW, overview(stages))
    return failed


def _remove(paths: Sequence[Path]) -> None:
    """Remove files that earlier settings or results gave."""
    for path in paths:
        path.unlink(missing_ok=True)
