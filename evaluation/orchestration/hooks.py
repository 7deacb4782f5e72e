"""How a run of the workflow starts and ends: targets, orphans, recommendations, and what failed.

Snakemake's own error for an unknown target ("No rule to produce stage5") names no valid target.
"""

import contextlib
import os
import shutil
import sys
import time
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from evaluation.checkpoints.subjects import stage_steps, stage_subjects
from evaluation.dependencies.places import Plans, checkpoint_places
from evaluation.dependencies.steps import SCORE, STEPS, sources
from evaluation.errors import EvaluationError, did_you_mean
from evaluation.orchestration.internals import Internals
from evaluation.orchestration.rule_inputs import (
    CHECKED,
    RuleInputs,
    needs_whole_stage,
)
from evaluation.orchestration.run_log import print_steps, running_log
from evaluation.orchestration.slurm import check_cluster, guard_run
from evaluation.orchestration.stops import RunError, or_stop, require_checkpoint
from evaluation.records import recorded_error
from evaluation.reporting.status import failures
from evaluation.reporting.terminal import advice_lines
from evaluation.results.comparison_file import not_compared
from evaluation.results.stage_files import RECOMMENDATION, Recommendation
from evaluation.settings.plan import StagePlan

_FIXED = ("all", "prefill")
"""Targets that exist whatever the names of the stages are."""


def check_targets_first(workflow: Any, inputs: RuleInputs, keep: Callable[[], None]) -> None:
    """Have the targets checked before Snakemake plans anything.

    A workflow that uses these rules as a module checks its targets itself.

    Args:
        keep: Writes the configuration that jobs read; called before every run except dry runs.
    """
    internals = Internals(workflow)
    if internals.is_module:
        _prepare_as_module(workflow, inputs, keep)
        return

    def check(is_dry: bool) -> None:
        print_steps(is_dry)
        rules, targets = list(internals.part("rules")), internals.part("dag_settings.targets")
        for target in targets:
            if not any(target == rule.name or rule.is_producer(target) for rule in rules):
                raise RunError(_unknown_target(target, inputs))
        _check_checkpoints(inputs, sorted(targets))
        if is_dry:
            return
        if internals.part("resource_settings.cores") == 0:  # Snakemake would wait for ever
            raise RunError("with --cores 0 no job can run; give 1 or more, such as --cores 2")
        keep()

    internals.before_execution(check)


def _check_checkpoints(inputs: RuleInputs, targets: Sequence[str]) -> None:
    """Stop if a checkpoint is missing."""
    for plan in inputs.plans.values():
        if any(needs_whole_stage(target, plan) for target in targets or ["all"]):
            subjects = or_stop(stage_subjects, plan, inputs.plans)
            inputs.outdated.look_at(subjects)
            for subject in subjects:
                if inputs.outdated(SCORE, subject):
                    require_checkpoint(subject)


def _prepare_as_module(workflow: Any, inputs: RuleInputs, keep: Callable[[], None]) -> None:
    """Prepare the run of a workflow that uses these rules as a module."""
    if vars(workflow).setdefault("evaluated", inputs.config) != inputs.config:
        raise RunError(
            "two modules of this workflow have different configurations, but the jobs of a run read one; "
            "put their stages into one configuration, or run them one after the other"
        )

    internals = Internals(workflow)
    rename = internals.part("modifier.avail_rulename")  # known while our rules are read

    def make_rest() -> None:
        rules = {job.rule.name for job in internals.jobs}
        or_stop(_make_after_failure, rules, inputs.plans, rename)

    def prepare(is_dry: bool) -> None:
        if not is_dry:
            keep()
            internals.before_hook("_onstart", lambda: or_stop(start, workflow))
            internals.before_hook("_onerror", make_rest)

    internals.before_execution(prepare)


def _unknown_target(target: str, inputs: RuleInputs) -> str:
    stages, results = list(inputs.plans), inputs.results
    return (
        f"nothing here is called {target!r}{did_you_mean(target, [*stages, *_FIXED])}; targets are "
        f"{', '.join(_FIXED)}, the stages {', '.join(stages)}, and files such as "
        f"{results}/{stages[0]}/summary.csv, with the results folder as it is configured"
    )


def start(workflow: Any) -> None:
    """Prepare a run at its start; `check_cluster` and `guard_run` may refuse it."""
    internals = Internals(workflow)
    internals.let_stops_in()
    check_cluster(workflow)
    guard_run(workflow)
    for left in CHECKED.glob("*"):  # left by killed runs: this run holds the folder's lock
        shutil.rmtree(left, ignore_errors=True)
    for job in internals.due_jobs:
        reset_future_times(map(Path, job.input))


def reset_future_times(inputs: Iterable[Path]) -> None:
    """Set times in the future, which a wrong clock left, to now: Snakemake would stop after the next job."""
    for path in inputs:
        if path.is_file() and path.stat().st_mtime > time.time():
            os.utime(path)


def end(workflow: Any, inputs: RuleInputs, *, failed: bool) -> None:
    """Print the warnings, every stage's recommendation and the failures at the end of a run.

    If a job failed, Snakemake skips the reports; they are then made here from the results that there are.
    """
    rules = {job.rule.name for job in Internals(workflow).jobs}
    plans = [plan for plan in inputs.plans.values() if _takes_part(plan, rules)]
    reported = [plan for plan in plans if f"report_{plan.name}" in rules]
    shutil.rmtree(CHECKED, ignore_errors=True)
    log = running_log()
    if log and (warnings := log.warnings()):
        _show("\n".join(["Warnings:", *(f"  {line}" for line in warnings)]))
    if failed:
        _make_after_failure(rules, inputs.plans)
        _show(failing(plans))
        return
    _show(ending(reported))
    left_out = [line for plan in reported for line in _recorded_errors(plan, inputs.plans)]
    if "front_page" in rules:
        left_out += [f"runs: {line}" for line in not_compared(inputs.config)]
    if left_out:
        _show("\n".join(["What failed:", *left_out]))
        raise EvaluationError(
            f"{len(left_out)} results could not be made, and tables and reports name them; the rest "
            f"is done. The first: {left_out[0]}"
        )


def ending(plans: Sequence[StagePlan]) -> str:
    """Return the last lines of a run: each stage's recommendation and the path of its report."""
    lines = []
    for plan in plans:
        advice = (
            ["no bridge, so no recommendation"] if plan.stage.bridge is None else advice_lines(plan)
        )
        first, *others = [*advice, f"report: {plan.results / 'report.html'}"]
        lines += [f"{plan.name}: {first}", *(f"  {line}" for line in others)]
    return "\n".join(lines)


def failing(plans: Sequence[StagePlan]) -> str:
    """Return the error messages of the jobs that failed, with their logs."""
    lines = [f"{plan.name} {line}" for plan in plans for line in failures(plan, stage_steps(plan))]
    return "\n".join(["What failed:", *lines]) if lines else ""


def _recorded_errors(plan: StagePlan, plans: Plans) -> Iterator[str]:
    """Yield a line for each checkpoint for which a step failed whose inputs did not."""
    for place in checkpoint_places(plan, plans):
        for step in STEPS.values():
            error = recorded_error(place.folder, step.name)
            read = sources(step, place)
            if error and not any(recorded_error(where.folder, one.name) for one, where in read):
                yield f"{plan.name} {place.label}: {error}"
    if plan.stage.bridge is not None:
        yield from (
            f"{plan.name} {line}"
            for line in Recommendation.read(plan.results / RECOMMENDATION).left_out
        )


def _takes_part(plan: StagePlan, rules: set[str]) -> bool:
    name = plan.name
    kinds = (*STEPS, "report", "check", "file_of")
    own = {f"{kind}_{name}" for kind in kinds} | {f"score_{name}_bridge"}
    return bool(rules & own) or any(rule.startswith(f"score_{name}_from_") for rule in rules)


def _make_after_failure(
    rules: Container[str], plans: Plans, rename: Callable[[str], str] = str
) -> None:
    """Make the reports that a run in which a job failed has left out; they name the failure.

    Args:
        rules: The rules of the run; `rename` returns the name of one of ours there.
    """
    from evaluation.reporting.report import report_run, report_stage

    for plan in plans.values():
        if rename(f"report_{plan.name}") in rules:
            with contextlib.suppress(EvaluationError, OSError):  # what failed is told below
                report_stage(plan, plans)
    if rename("front_page") in rules:
        with contextlib.suppress(EvaluationError, OSError):
            report_run(plans)


def _show(text: str) -> None:
    if text:
        print(f"\n{text}\n", file=sys.stderr, flush=True)
