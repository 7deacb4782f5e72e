"""How a run of the workflow starts and ends; a workflow that uses the rules as a module does without."""

import contextlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from evaluation.errors import EvaluationError, ResultsError
from evaluation.flow.job_logs import failures, last_error
from evaluation.flow.lock import ResultsLock
from evaluation.flow.run import PlannedRun
from evaluation.flow.slurm import end_orphans, watch_stuck_jobs
from evaluation.flow.targets import COLLECT, SCORE, Plans, check_results
from evaluation.records import recorded_error
from evaluation.settings.plan import StagePlan


def start(run: PlannedRun) -> None:
    """Take the lock of the results, end orphaned jobs, and have stuck ones put back into the queue."""
    lock = ResultsLock(Path(run.config.results))
    lock.take()
    run.targets.once(lambda: (lock, time.time()), "started")
    end_orphans()
    watch_stuck_jobs()


def end(run: PlannedRun, *, failed: bool) -> None:
    """Print each stage's recommendation, and what failed; give back the lock.

    If a job failed, Snakemake skips the report, which is then made here from the results that there are.

    Raises:
        EvaluationError: Something could not be made; the reports name it.
    """
    lock, began = run.targets.once(lambda: (ResultsLock(Path(run.config.results)), 0.0), "started")
    try:
        if failed and any(
            _fresh(plan, "eval_logs/*/**/*.log", began) for plan in run.plans.values()
        ):
            report_despite_failures(run)
        shown = [plan for plan in run.plans.values() if failed or _is_shown(run, plan, began)]
        for plan in [] if failed else shown:
            _say(_advice(plan, run.plans))
        errors = (
            [*_logged(run, began)]
            if failed
            else [e for plan in shown for e in _recorded(run, plan)]
        )
        if errors:
            _say("\n".join(["What failed:", *(f"  {error}" for error in errors)]))
        if errors and not failed:
            raise EvaluationError(
                f"{len(errors)} results could not be made, and reports name them; the rest is done. "
                f"The first: {errors[0]}"
            )
    finally:
        lock.release()


def report_despite_failures(run: PlannedRun) -> None:
    """Make all reports from the results that there are; pages of outdated ones say so."""
    from evaluation.reporting.report import report_run, report_stage, show_stage

    jobs = {name: failures(plan) for name, plan in run.plans.items()}
    for plan in run.plans.values():
        with contextlib.suppress(EvaluationError, OSError):  # what failed is told below
            try:
                check_results(plan, run.plans)
            except ResultsError as error:  # the tables stay, and the pages say so
                jobs[plan.name] = [*jobs[plan.name], str(error)]
                show_stage(plan, run.plans, jobs[plan.name])
            else:
                report_stage(plan, run.plans, jobs[plan.name])
    with contextlib.suppress(EvaluationError, OSError):
        report_run(run.plans, jobs)


def _is_shown(run: PlannedRun, plan: StagePlan, began: float) -> bool:
    """Return whether this run made the report of a stage."""
    logs = (Path(run.config.results) / "report.log", plan.results / "eval_logs" / "report.log")
    return any(log.is_file() and log.stat().st_mtime >= began for log in logs)


def _fresh(plan: StagePlan, pattern: str, began: float) -> list[Path]:
    return sorted(log for log in plan.results.glob(pattern) if log.stat().st_mtime >= began)


def _logged(run: PlannedRun, began: float) -> Iterator[str]:
    """Yield the error of each job of this run that failed, with its log."""
    logs = {
        log: plan.name
        for plan in run.plans.values()
        for log in _fresh(plan, "eval_logs/**/*.log", began)
    }
    logs |= {log: name for name, cache in run.setups.items() for log in cache.glob("logs/*.log")}
    logs |= {Path(run.config.results) / "report.log": "report"}
    for log, name in logs.items():
        if log.is_file() and log.stat().st_mtime >= began and (error := last_error(log)):
            yield f"{name}: {error} ({log})"


def _recorded(run: PlannedRun, plan: StagePlan) -> Iterator[str]:
    """Yield the permanent error of each checkpoint of a stage."""
    for subject in run.subjects(str(plan.results)):
        if error := recorded_error(subject.folder, SCORE, COLLECT):
            yield f"{plan.name} {subject.label}: {error}"


def _advice(plan: StagePlan, plans: Plans) -> str:
    """Return a stage's recommendation, and the path of its report."""
    from evaluation.reporting.decision import decision_lines, decision_row
    from evaluation.reporting.judged_stage import read_stage

    lines = ["no bridge, so no recommendation"]
    if plan.stage.bridge:
        lines = decision_lines(decision_row(read_stage(plan, plans)))
    first, *others = [*lines, f"report: {plan.results / 'report.html'}"]
    return "\n".join([f"{plan.name}: {first}", *(f"  {line}" for line in others)])


def _say(text: str) -> None:
    print(f"\n{text}\n", file=sys.stderr, flush=True)
