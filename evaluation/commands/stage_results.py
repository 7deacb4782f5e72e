"""The steps of the workflow that need no GPU, `status` and `bridge-table`."""

import argparse
from collections.abc import Mapping, Sequence
from functools import partial

from evaluation.checkpoints.subjects import step_subject, steps_so_far
from evaluation.commands import (
    Commands,
    add_configured,
    add_json,
    add_subjects,
    asked_subjects,
    chosen_plans,
    plans_with_known_steps,
    plans_with_tables,
    print_json,
)
from evaluation.dependencies.places import Target, place_of
from evaluation.dependencies.steps import STEPS
from evaluation.errors import ConfigError, report
from evaluation.records import RECORDED
from evaluation.settings.planning import named_stage


def add_commands(commands: "Commands[argparse.ArgumentParser]") -> None:
    """Add a command for each step of the workflow, `bridge-table` and `status`."""
    for step in STEPS.values():
        if step.help:
            stage = None if step.scope == "run" else True
            command = add_configured(commands, _make, step.help, stage=stage, name=step.words)
            command.set_defaults(made=step.name)
            if step.of_checkpoint:
                add_subjects(command, bridge=step.scope == "checkpoint")
    add_json(
        add_configured(
            commands, _bridge_table, "show each stage's deltas and verdicts", stage=False
        )
    )
    add_json(
        add_configured(commands, _status, "show what is done and what is missing", stage=False)
    )


def _make(options: argparse.Namespace) -> int:
    """Make a step of the workflow; return RECORDED if some of it cannot be made."""
    from evaluation.dependencies.command_inputs import CommandInputs
    from evaluation.dependencies.making import make

    step, plans = STEPS[options.made], plans_with_known_steps(options)
    stage = None if step.scope == "run" else named_stage(plans, options.stage, options.config)
    plan = stage or next(iter(plans.values()))
    if not step.is_wanted(plan):
        raise ConfigError(step.unwanted.format(stage=plan.name, config=options.config))
    targets: Mapping[str, Sequence[Target]] = {"run": [plans], "stage": [plan]}
    chosen = targets.get(step.scope) or asked_subjects(options, plan, plans)
    CommandInputs(options.config, plans).check_inputs(step.name, chosen)
    code = 0
    for target in chosen:
        record = make(step.name, target)
        if record.error is not None:
            report(record.error)
            code = RECORDED
        if not step.of_checkpoint:
            folder = place_of(target).folder
            print(*(folder / name for name in record.files), sep="\n")
        elif record.error is None:
            print(place_of(target).folder)
    return code


def _bridge_table(options: argparse.Namespace) -> int:
    """Print the deltas and verdicts of the chosen stage, or of all."""
    from evaluation.reporting.terminal import bridge_table as table
    from evaluation.reporting.terminal import bridge_verdicts

    plans = plans_with_tables(options, partial(chosen_plans, options))
    if options.json:
        print_json(bridge_verdicts(plans))
    else:
        print(table(plans))
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
