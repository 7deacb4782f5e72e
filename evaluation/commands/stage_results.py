"""The steps of the workflow that need no GPU, `report`, `status` and `bridge-table`."""

import argparse
from collections.abc import Sequence

from evaluation.checkpoints.subjects import step_subject, steps_so_far
from evaluation.commands import (
    Commands,
    add_configured,
    add_json,
    add_subjects,
    asked_subjects,
    chosen_plans,
    configured_plans,
    plans_with_known_steps,
    print_json,
)
from evaluation.dependencies.places import place_of
from evaluation.dependencies.steps import STEPS
from evaluation.errors import report
from evaluation.records import RECORDED
from evaluation.settings.planning import named_stage


def add_commands(commands: "Commands[argparse.ArgumentParser]") -> None:
    """Add a command for each step of the workflow, `report`, `bridge-table` and `status`."""
    for step in STEPS.values():
        if step.help:
            command = add_configured(commands, _make, step.help, stage=True, name=step.name)
            command.set_defaults(made=step.name)
            add_subjects(command, bridge=True)
    about = "compare steps with their bridge; write tables, figures and pages of all stages"
    command = add_configured(commands, _report, about, stage=False)
    command.add_argument("--front", action="store_true", help="only the page of all stages")
    about = "show what to do after each stage, and why"
    add_json(add_configured(commands, _bridge_table, about, stage=False))
    about = "show what is done and what is missing"
    add_json(add_configured(commands, _status, about, stage=False))


def _make(options: argparse.Namespace) -> int:
    """Make a step of the workflow; return RECORDED if some of it cannot be made."""
    from evaluation.dependencies.command_inputs import CommandInputs
    from evaluation.dependencies.making import make

    plans = plans_with_known_steps(options)
    plan = named_stage(plans, options.stage, options.config)
    chosen = asked_subjects(options, plan, plans)
    CommandInputs(options.config, plans).check_inputs(options.made, chosen)
    code = 0
    for subject in chosen:
        record = make(options.made, subject)
        if record.error is None:
            print(place_of(subject).folder)
        else:
            report(record.error)
            code = RECORDED
    return code


def _report(options: argparse.Namespace) -> int:
    """Make the reports; return RECORDED if some checkpoints or runs cannot be compared."""
    from evaluation.dependencies.command_inputs import CommandInputs
    from evaluation.dependencies.places import checkpoint_places
    from evaluation.dependencies.steps import COLLECT
    from evaluation.reporting.report import report_run, report_stage

    plans = plans_with_known_steps(options)
    chosen = {} if options.front else chosen_plans(options, plans)
    inputs, failed = CommandInputs(options.config, plans), list[str]()
    for plan in chosen.values():
        if not steps_so_far(plan) and options.stage is None:
            continue
        inputs.check(COLLECT, checkpoint_places(plan, plans))
        failed += [f"{plan.name} {line}" for line in report_stage(plan, plans)]
        print(plan.results)
    if options.stage is None:
        failed += report_run(plans)
        print(next(iter(plans.values())).config.results)
    return _reported(failed)


def _reported(failed: Sequence[str]) -> int:
    for sentence in failed:
        report(sentence)
    return RECORDED if failed else 0


def _bridge_table(options: argparse.Namespace) -> int:
    """Print the decision of the chosen stage, or of all."""
    from evaluation.reporting.terminal import bridge_table as table
    from evaluation.reporting.terminal import bridge_verdicts

    plans = configured_plans(options)
    chosen = chosen_plans(options, plans)
    if options.json:
        print_json(bridge_verdicts(chosen, plans))
    else:
        print(table(chosen, plans))
    return 0


def _status(options: argparse.Namespace) -> int:
    """Print what is done and what is missing; return 1 unless all is done."""
    from evaluation.dependencies.outdated import Outdated
    from evaluation.reporting.status import stage_status, status_table

    plans = plans_with_known_steps(options)
    chosen, outdated = chosen_plans(options, plans), Outdated(plans)
    steps = {name: steps_so_far(plan) for name, plan in chosen.items()}
    outdated.look_at(step_subject(chosen[name], step) for name in chosen for step in steps[name])
    statuses = {name: stage_status(plan, steps[name], outdated) for name, plan in chosen.items()}
    if options.json:
        print_json({"stages": statuses})
    else:
        print(status_table(statuses))
    return 0 if all(entry["complete"] for entry in statuses.values()) else 1
