"""The command line: parses arguments and calls the functions that compute."""

import argparse
import json
import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaluation.version import CONFIG_VARIABLE, DEFAULT_CONFIG

if TYPE_CHECKING:
    from evaluation.checkpoints.subjects import Subject
    from evaluation.settings.plan import StagePlan

Commands = argparse._SubParsersAction  # argparse has no public name for it


def add_command(
    commands: "Commands[argparse.ArgumentParser]",
    run: Callable[[argparse.Namespace], int],
    help: str,
    *,
    name: str | None = None,
    **keywords: Any,
) -> argparse.ArgumentParser:
    """Add a command with a line of help, named after its function: `_bridge_table` runs `bridge-table`."""
    name = name or run.__name__.strip("_").replace("_", "-")
    command = commands.add_parser(name, help=help, **keywords)
    command.set_defaults(run=run)
    return command


def add_configured(
    commands: "Commands[argparse.ArgumentParser]",
    run: Callable[[argparse.Namespace], int],
    help: str,
    *,
    stage: bool | None = None,
    **keywords: Any,
) -> argparse.ArgumentParser:
    """Add a command with `--config`, and optionally `--stage`.

    Args:
        stage: Whether `--stage` is required; None to leave it out.
    """
    command = add_command(commands, run, help, **keywords)
    command.add_argument(
        "--config",
        "--configfile",
        type=a_path,
        default=os.environ.get(CONFIG_VARIABLE, DEFAULT_CONFIG),
        help="configuration file (%(default)s)",
    )
    if stage is not None:
        command.add_argument("--stage", type=a_name, required=stage, help="name of the stage")
    return command


def add_json(command: argparse.ArgumentParser) -> None:
    """Add `--json`, for commands whose output programs may read."""
    command.add_argument("--json", action="store_true", help="as JSON (keys: docs/command_line.md)")


def print_json(content: Mapping[str, Any]) -> None:
    """Print an object as JSON in ASCII, which any terminal can show."""
    print(json.dumps(content, indent=1), flush=True)


def add_subjects(
    command: argparse.ArgumentParser, *, bridge: bool, steps: str = "steps of the stage"
) -> None:
    """Add the options that name steps or the bridge of a stage."""
    which = command.add_mutually_exclusive_group(required=True)
    which.add_argument("--step", type=whole_number(0), nargs="+", action="extend", help=steps)
    if bridge:
        which.add_argument("--bridge", action="store_true", help="the stage's bridge checkpoint")


def asked_subjects(
    options: argparse.Namespace, plan: "StagePlan", plans: "Mapping[str, StagePlan]"
) -> "list[Subject]":
    """Return the steps named on the command line, each once, or the stage's bridge."""
    from evaluation.checkpoints.subjects import bridge_subject, step_subject

    if getattr(options, "bridge", False):
        return [bridge_subject(plan, plans)]
    return [step_subject(plan, step) for step in dict.fromkeys(options.step)]


def chosen_plans(
    options: argparse.Namespace, plans: "dict[str, StagePlan]"
) -> "dict[str, StagePlan]":
    """Return the stage that `--stage` names, or all.

    `named_stage` raises ConfigError if there is no such stage.
    """
    from evaluation.settings.planning import named_stage

    if options.stage is None:
        return plans
    return {options.stage: named_stage(plans, options.stage, options.config)}


def configured_plans(options: argparse.Namespace) -> "dict[str, StagePlan]":
    """Return all stages, with the steps as they are configured."""
    from evaluation.settings.config import load_config
    from evaluation.settings.planning import plan_stages

    return plan_stages(load_config(options.config))


def plans_with_known_steps(options: argparse.Namespace) -> "dict[str, StagePlan]":
    """Return all stages, with the steps that exist now."""
    from evaluation.flow.steps import with_known_steps
    from evaluation.settings.config import load_config
    from evaluation.settings.planning import plan_stages

    return plan_stages(with_known_steps(load_config(options.config)))


def a_name(text: str) -> str:
    """Return a name for argparse, which may not be blank (as an unset shell variable would be)."""
    if not text.strip():
        raise argparse.ArgumentTypeError(
            "is empty; give a name or path (is a variable of your shell not set?)"
        )
    return text


def a_path(text: str) -> Path:
    """Return a path for argparse, which need not exist; an empty one would mean the current folder."""
    return Path(a_name(text))


def whole_number(at_least: int) -> Callable[[str], int]:
    """Return a type for argparse: whole numbers from a bound on."""

    def read(text: str) -> int:
        if not text.isdecimal() or not at_least <= int(text) < 2**63:
            raise argparse.ArgumentTypeError(
                f"{text!r} is not a whole number from {at_least:,} to 2^63 - 1"
            )
        return int(text)

    return read


def finite_number(at_least: float) -> Callable[[str], float]:
    """Return a type for argparse: numbers from a bound on and below 10⁹, such as seconds."""

    def read(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not at_least <= number < 1e9:
            raise argparse.ArgumentTypeError(
                f"{text!r} is not a finite number from {at_least:g} on"
            )
        return number

    return read
