"""`deltas`, `tables`, `status` and other commands that need only stored scores, no model or GPU."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from evaluation.checkpoints.subjects import bridge_subject, candidate_subject, candidates_so_far
from evaluation.commands import (
    Commands,
    add_candidates,
    add_configured,
    add_json,
    asked_candidates,
    chosen_plans,
    plans_with_known_steps,
    plans_with_tables,
    print_json,
)
from evaluation.errors import ConfigError
from evaluation.exit_codes import report
from evaluation.records import RECORDED
from evaluation.settings.plan import StagePlan
from evaluation.settings.planning import named_stage
from evaluation.terminal_layout import show

if TYPE_CHECKING:
    from evaluation.dependencies.command_inputs import CommandInputs


def add_commands(commands: "Commands[argparse.ArgumentParser]") -> None:
    """Add `deltas`, `tables`, `figures`, `comparison`, `front-page` and others."""
    what = "compare steps with their bridge"
    add_candidates(add_configured(commands, _deltas, what, stage=True), bridge=False)
    add_configured(
        commands, _tables, "write a stage's tables, recommendation and report", stage=True
    )
    add_configured(
        commands, _figures, "write a stage's curves and forest plots as SVG files", stage=True
    )
    add_configured(
        commands,
        _comparison,
        "compare this run with those under `runs` in the configuration",
    )
    add_configured(commands, _front_page, "write the report's first page, over all stages")
    add_json(add_configured(commands, _bridge_table, "show every stage's deltas and verdicts"))
    add_json(
        add_configured(commands, _status, "show what is done and what is missing", stage=False)
    )


def _stage(options: argparse.Namespace) -> tuple[StagePlan, "CommandInputs"]:
    """Return the stage named by `--stage`, and the checks of its inputs."""
    from evaluation.dependencies.command_inputs import CommandInputs

    plans = plans_with_known_steps(options)
    plan = named_stage(plans, options.stage, options.config)
    return plan, CommandInputs(options.config, plans)


def _deltas(options: argparse.Namespace) -> int:
    """Compare steps or merges with their bridge; return RECORDED if some cannot be compared."""
    from evaluation.bridge.write import make_deltas

    plan, inputs = _stage(options)
    if plan.stage.bridge is None:
        raise ConfigError(
            f"stages.{plan.name}.bridge: none is configured, so there are no deltas; name a `stage` or a `path` there"
        )
    candidates = asked_candidates(options)
    subjects = [candidate_subject(plan, candidate) for candidate in candidates]
    inputs.check_results([*subjects, bridge_subject(plan, inputs.plans)])
    code = 0
    for step in candidates:
        record = make_deltas(plan, step)
        if record.error is not None:
            report(record.error)
            code = RECORDED
        else:
            print(plan.step_folder(step))
    return code


def _tables(options: argparse.Namespace) -> int:
    """Write a stage's tables, recommendation and report."""
    from evaluation.reporting.steps import make_tables

    plan, inputs = _stage(options)
    inputs.check_deltas(plan)
    make_tables(plan)
    return 0


def _figures(options: argparse.Namespace) -> int:
    """Write a stage's figures, and print their files."""
    from evaluation.reporting.steps import make_figures

    plan, inputs = _stage(options)
    inputs.check_tables(plan)
    for name in make_figures(plan).files:
        print(plan.results / name)
    return 0


def _comparison(options: argparse.Namespace) -> int:
    """Compare this run with the configured ones; return RECORDED if some cannot be compared."""
    from evaluation.reporting.steps import make_comparison

    plans = plans_with_tables(options)
    config = next(iter(plans.values())).config
    if not config.runs:
        raise ConfigError(f"{options.config}: has no `runs`; add some, or use `compare A B`")
    record = make_comparison(plans)
    print(*(Path(config.results) / name for name in record.files), sep="\n")
    if record.error is not None:
        report(record.error)
        return RECORDED
    return 0


def _front_page(options: argparse.Namespace) -> int:
    """Write the report's first page, and print its file."""
    from evaluation.reporting.steps import make_front_page

    print(make_front_page(plans_with_tables(options)))
    return 0


def _bridge_table(options: argparse.Namespace) -> int:
    """Print every stage's deltas and verdicts."""
    from evaluation.reporting.terminal import bridge_table as table
    from evaluation.reporting.terminal import bridge_verdicts

    plans = plans_with_tables(options)
    if options.json:
        print_json(bridge_verdicts(plans))
    else:
        show(table(plans))
    return 0


def _status(options: argparse.Namespace) -> int:
    """Print what is done and what is missing; return 1 unless all is done."""
    from evaluation.dependencies.outdated import Outdated
    from evaluation.reporting.status import stage_status, status_table
    from evaluation.results.command_output import Status

    plans = plans_with_known_steps(options)
    chosen, outdated = chosen_plans(options, plans), Outdated(plans)
    candidates = {name: candidates_so_far(plan) for name, plan in chosen.items()}
    outdated.look_at(
        candidate_subject(chosen[name], candidate)
        for name in chosen
        for candidate in candidates[name]
    )
    statuses = {
        name: stage_status(plan, candidates[name], outdated) for name, plan in chosen.items()
    }
    if options.json:
        print_json(Status.model_validate_json(json.dumps({"stages": statuses})))
    else:
        show(status_table(statuses))
    return 0 if all(entry["complete"] for entry in statuses.values()) else 1
