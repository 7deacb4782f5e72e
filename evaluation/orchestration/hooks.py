"""How a run of the workflow starts and ends: orphans, recommendations, and what failed."""

import contextlib
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from evaluation.checkpoints.subjects import stage_steps
from evaluation.command_hints import snakemake
from evaluation.dependencies.caches import stage_entries
from evaluation.dependencies.so_far import are_tables_late
from evaluation.dependencies.steps import COLLECT, COMPARISON, STEP_DELTAS
from evaluation.errors import EvaluationError
from evaluation.orchestration.cluster import check_cluster
from evaluation.orchestration.rule_inputs import CHECKED, RuleInputs
from evaluation.orchestration.slurm import guard_run
from evaluation.records import read_record
from evaluation.reporting.status import failures
from evaluation.reporting.terminal import advice_lines
from evaluation.settings.plan import StagePlan


def start(workflow: Any, inputs: RuleInputs) -> None:
    """Called as a run starts; raises EvaluationError like `check_cluster` and `guard_run`."""
    check_cluster(workflow)
    guard_run(workflow)
    for left in CHECKED.glob("*"):  # of runs that were killed: this one holds the folder's lock
        shutil.rmtree(left, ignore_errors=True)
    for job in workflow.dag.needrun_jobs():
        _remove_what_is_no_file(map(Path, job.output))


def _remove_what_is_no_file(outputs: Iterable[Path]) -> None:
    """Pipes, devices and links to them in the place of results, which Snakemake would copy for ever."""
    for path in outputs:
        if os.path.lexists(path) and not path.is_file() and not path.is_dir():
            path.unlink()


def end(workflow: Any, inputs: RuleInputs, logs: Sequence[str], *, failed: bool = False) -> None:
    """Called as a run ends: every stage's recommendation, then what failed.

    A run in which a job failed makes the tables of what there is, which Snakemake leaves out.

    Raises:
        EvaluationError: naming the checkpoints that have no results though all jobs ended well.
    """
    rules = {job.rule.name for job in workflow.dag.jobs}
    plans = [plan for plan in inputs.plans.values() if _takes_part(plan, rules)]
    tables = [plan for plan in plans if f"tables_{plan.name}" in rules]
    shutil.rmtree(CHECKED, ignore_errors=True)
    if failed:
        for plan in tables:
            _make_what_there_is(plan)
        _say(vanished(plans, logs))
        _say(failing(plans))
        return
    _say(ending(tables))
    left_out = [line for plan in tables for line in recorded_errors(plan)]
    left_out += list(comparison_error(inputs)) if "comparison" in rules else []
    if left_out:
        _say("\n".join(["What failed:", *left_out]))
        raise EvaluationError(
            f"{len(left_out)} results could not be made, and tables and reports name them; the rest "
            f"is done. The first: {left_out[0]}"
        )


def ending(plans: Sequence[StagePlan]) -> str:
    """What a run ends with: each stage's recommendation and where to read more."""
    return "\n".join(line for plan in plans for line in _ending(plan))


def failing(plans: Sequence[StagePlan]) -> str:
    """The last sentences of the jobs that failed, with their logs; empty if none says why."""
    lines = [f"{plan.name} {said}" for plan in plans for said in failures(plan, stage_steps(plan))]
    return "\n".join(["What failed:", *lines]) if lines else ""


def vanished(plans: Sequence[StagePlan], logs: Sequence[str]) -> str:
    """What is gone if caches vanished: on a cluster such a job ends "successfully" without output."""
    files = {str(entry.record) for plan in plans for entry in stage_entries(plan)}
    gone = sorted(file for file in files if not Path(file).exists())
    said = "".join(Path(log).read_text(encoding="utf-8", errors="replace") for log in logs)
    if not gone or "some output files are missing" not in said:
        return ""
    return (
        f"{len(gone)} prefilled files are gone, {gone[0]} among them. Jobs that need them end without "
        f"their output files; `{snakemake('prefill')}` makes them again."
    )


def recorded_errors(plan: StagePlan) -> Iterator[str]:
    """A line for each checkpoint without results, and for each that could not be compared."""
    subjects = [(f"step {step}", plan.step_folder(step)) for step in stage_steps(plan)]
    subjects += [("bridge", plan.bridge_folder)] if plan.stage.bridge is not None else []
    without = set()
    for label, folder in subjects:
        record = read_record(folder, COLLECT)
        if record is not None and record.error is not None:
            without.add(label)
            yield f"{plan.name} {label}: {record.error}"
    for label, folder in subjects:
        record = read_record(folder, STEP_DELTAS)
        if not without & {label, "bridge"} and record is not None and record.error is not None:
            yield f"{plan.name} {label}: deltas: {record.error}"


def comparison_error(inputs: RuleInputs) -> Iterator[str]:
    """A line on the runs that could not be compared with this one."""
    results = Path(next(iter(inputs.plans.values())).config.results)
    record = read_record(results, COMPARISON)
    if record is not None and record.error is not None:
        yield f"comparison: {record.error}"


def _takes_part(plan: StagePlan, rules: set[str]) -> bool:
    name = plan.name
    kinds = ("tables", "figures", "score", "collect", "deltas", "check", "file_of")
    own = {*(f"{kind}_{name}" for kind in kinds), f"score_{name}_bridge"}
    return bool(rules & own) or any(rule.startswith(f"score_{name}_from_") for rule in rules)


def _make_what_there_is(plan: StagePlan) -> None:
    """Tables and report of a stage for which a job failed, so that they name it."""
    from evaluation.reporting.steps import make_tables

    if not are_tables_late(plan):
        return
    with contextlib.suppress(EvaluationError):  # what failed is said all the same
        make_tables(plan)


def _ending(plan: StagePlan) -> list[str]:
    lines = ["no bridge, so no recommendation"] if plan.stage.bridge is None else advice_lines(plan)
    first, *others = [*lines, f"report: {plan.results / 'report.html'}"]
    return [f"{plan.name}: {first}", *(f"  {line}" for line in others)]


def _say(text: str) -> None:
    if text:
        print(f"\n{text}\n", file=sys.stderr, flush=True)
