"""`report`, `status` and `bridge-table`: what shows the results that there are."""

import argparse
from collections.abc import Sequence
from dataclasses import asdict

from evaluation.checkpoints.subjects import steps_so_far
from evaluation.commands import (
    Commands,
    add_configured,
    add_json,
    chosen_plans,
    plans_with_known_steps,
    print_json,
)
from evaluation.errors import report
from evaluation.records import RECORDED


def add_commands(commands: "Commands[argparse.ArgumentParser]") -> None:
    """Add `report`, `bridge-table` and `status`."""
    about = "compare steps with their bridge; write tables, figures and pages of all stages"
    add_configured(commands, _report, about, stage=False)
    about = "show what to do after each stage, and why"
    add_json(add_configured(commands, _bridge_table, about, stage=False))
    about = "show what is done and what is missing"
    add_json(add_configured(commands, _status, about, stage=False))


def _report(options: argparse.Namespace) -> int:
    """Make the reports; return RECORDED if some checkpoints or runs cannot be compared."""
    from evaluation.flow.job_logs import failures
    from evaluation.flow.targets import check_results
    from evaluation.reporting.report import report_run, report_stage

    plans, failed = plans_with_known_steps(options), list[str]()
    jobs = {name: failures(plan) for name, plan in plans.items()}
    for plan in chosen_plans(options, plans).values():
        if not steps_so_far(plan) and options.stage is None:
            continue
        check_results(plan, plans)
        failed += [f"{plan.name} {line}" for line in report_stage(plan, plans, jobs[plan.name])]
        print(plan.results)
    if options.stage is None:
        failed += report_run(plans, jobs)
        print(next(iter(plans.values())).config.results)
    return _reported(failed)


def _reported(failed: Sequence[str]) -> int:
    for sentence in failed:
        report(sentence)
    return RECORDED if failed else 0


def _bridge_table(options: argparse.Namespace) -> int:
    """Print the decision of the chosen stage, or of all."""
    from evaluation.reporting.decision import decision_lines, decision_row
    from evaluation.reporting.judged_stage import read_stage

    plans = plans_with_known_steps(options)
    stages = [read_stage(plan, plans) for plan in chosen_plans(options, plans).values()]
    rows = {stage.plan.name: decision_row(stage) for stage in stages}
    if options.json:
        print_json({"stages": {name: asdict(row) for name, row in rows.items()}})
    else:
        lines = {name: "\n  ".join(decision_lines(row)) for name, row in rows.items()}
        print("\n\n".join(f"{name}: {text}" for name, text in lines.items()))
    return 0


def _status(options: argparse.Namespace) -> int:
    """Print what is done and what is missing; return 1 unless all is done."""
    from evaluation.flow.status import stage_status, status_table
    from evaluation.flow.targets import Targets

    plans, targets = plans_with_known_steps(options), Targets()
    chosen = chosen_plans(options, plans)
    statuses = {name: stage_status(plan, plans, targets) for name, plan in chosen.items()}
    if options.json:
        print_json({"stages": statuses})
    else:
        print(status_table(statuses))
    return 0 if all(entry["complete"] for entry in statuses.values()) else 1
