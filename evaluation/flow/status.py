"""The state of a stage, from records and logs: what is done, running, failed, outdated or missing."""

from collections.abc import Mapping
from typing import Any

from evaluation.checkpoints.config_files import configuration_file
from evaluation.checkpoints.subjects import Subject, stage_subjects
from evaluation.errors import EvaluationError, ResultsError
from evaluation.flow.job_logs import checkpoint_logs, is_running, last_error, latest_log
from evaluation.flow.targets import COLLECT, SCORE, Plans, Targets
from evaluation.records import records_of
from evaluation.reporting.terminal import as_table
from evaluation.results.stage_files import RECOMMENDATION, Recommendation
from evaluation.settings.plan import StagePlan


def stage_status(plan: StagePlan, plans: Plans, targets: Targets) -> dict[str, Any]:
    """Return the state of a stage as `status --json` has it.

    The scores and results of each checkpoint are `done`, `outdated`, `running`, `failed` or `missing`.
    `problem` is what stops the whole stage, such as caches that are not prefilled. The stage is `complete`
    if everything is done.
    """
    problem = targets.caches.problem(plan)
    problem = f"{problem}; run: snakemake prefill" if problem else None
    try:
        subjects = stage_subjects(plan, plans)
    except EvaluationError as error:
        subjects, problem = [], str(error)
    targets.look_at(subjects)
    states = {subject.label: _subject(subject, targets, problem) for subject in subjects}
    results = [state[step] for state in states.values() for step in (SCORE, COLLECT)]
    return {
        "stage": plan.name,
        "complete": bool(states) and all(state == "done" for state in results),
        "problem": problem or last_error(plan.check_log),
        **_verdict(plan),
        "subjects": states,
    }


def _subject(subject: Subject, targets: Targets, problem: str | None) -> dict[str, Any]:
    """Return the state of a checkpoint; without usable caches, nothing is known to be up to date."""
    logs = checkpoint_logs(subject.plan, subject.own_step)
    newest = latest_log(*logs) if logs else None
    running = newest is not None and is_running(newest, subject.folder)
    error: str | None = None
    states: dict[str, Any] = {}
    for step in (SCORE, COLLECT):
        target = None if problem else (targets.score if step == SCORE else targets.collect)(subject)
        if target and target.record:
            error = error or target.record.error
            states[step] = "failed" if target.record.error else "done"
        else:
            states[step] = "outdated" if records_of(subject.folder, step) else "missing"
    if "done" not in (states[SCORE], states[COLLECT]) and newest and not error:
        error = last_error(newest)
    if states[COLLECT] != "done" and (running or error):
        step = SCORE if states[SCORE] != "done" else COLLECT
        states[step] = "running" if running else "failed"
    return {
        **states,
        "error": error,
        "log": str(newest) if newest and (error or running) else None,
        "deleted": configuration_file(subject.checkpoint) is None,
        "partly_deleted": targets.is_deleted_in_part(subject),
    }


def _verdict(plan: StagePlan) -> dict[str, Any]:
    try:
        advice = Recommendation.read(plan.results / RECOMMENDATION)
    except ResultsError:  # there is none yet
        return {"verdict": None, "provisional": None}
    return {"verdict": advice.verdict, "provisional": advice.provisional}


def status_table(statuses: Mapping[str, Mapping[str, Any]]) -> str:
    """Return all stages in one table, then their verdicts, logs of running jobs and errors of failed ones."""
    rows, lines = [["stage", "step", "scores", "results"]], list[str]()
    for stage, entry in statuses.items():
        for name, subject in entry["subjects"].items():
            gone = (
                " (deleted)"
                if subject["deleted"]
                else " (partly deleted)" * subject["partly_deleted"]
            )
            rows.append([stage, f"{name}{gone}", subject[SCORE], subject[COLLECT]])
            if subject["error"]:
                lines.append(f"{stage} {name}: {subject['error']} ({subject['log']})")
            elif subject["log"]:
                lines.append(f"{stage} {name}: runs ({subject['log']})")
        verdict = f"; {entry['verdict']}" if entry["verdict"] else ""
        verdict += ", provisional" if verdict and entry["provisional"] else ""
        lines.append(f"{stage}: {'complete' if entry['complete'] else 'incomplete'}{verdict}")
        lines += [f"  {entry['problem']}"] if entry["problem"] and not entry["complete"] else []
    return "\n".join([as_table(rows), "", *lines])
