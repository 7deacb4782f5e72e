"""`show`: questions of a task with their answers, in a terminal."""

import argparse

from evaluation.commands import (
    Commands,
    a_name,
    add_configured,
    plans_with_known_steps,
    whole_number,
)
from evaluation.settings.planning import named_stage


def add_commands(commands: "Commands[argparse.ArgumentParser]") -> None:
    """Add `show`."""
    command = add_configured(
        commands,
        _show,
        "show questions of a task with their answers, those of the bridge beside",
        epilog="For all of them in a browser: `export --format inspect`.",
    )
    add = command.add_argument
    add("stage", type=a_name, help="name of the stage")
    add("step", type=whole_number(0), help="a scored step")
    add("task", type=a_name, help="a task, or a category of probes")
    add(
        "--flipped",
        action="store_true",
        help="only those that were gained or lost, lost ones first",
    )
    add(
        "-n", dest="most", type=whole_number(1), default=5, help="most questions each (%(default)s)"
    )


def _show(options: argparse.Namespace) -> int:
    """Print the first questions of a task, or those that changed most against the bridge."""
    from evaluation.errors import ConfigError
    from evaluation.reporting.flips import answers_of, as_text, tier_of

    plan = named_stage(plans_with_known_steps(options), options.stage, options.config)
    if options.flipped and plan.stage.bridge is None:
        raise ConfigError(f"{options.config}: {plan.name} has no bridge; leave --flipped out")
    tier = tier_of(plan, plan.step_folder(options.step), options.task)
    asked = plan, options.step, tier, options.task, options.most
    pairs = [*answers_of(*asked, flipped=options.flipped)]
    for pair in pairs:
        print(as_text(pair), end="\n\n")
    print(f"{len(pairs)} questions of {options.task} are shown")
    return 0
