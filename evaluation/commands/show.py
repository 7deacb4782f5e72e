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
    from evaluation.reporting.flips import answered, as_text, flips_of, tier_of

    plan = named_stage(plans_with_known_steps(options), options.stage, options.config)
    if options.flipped and plan.stage.bridge is None:
        raise ConfigError(f"{options.config}: {plan.name} has no bridge; leave --flipped out")
    tier = tier_of(plan, plan.step_folder(options.step), options.task)
    if not options.flipped:
        for ours, theirs in answered(plan, options.step, tier, options.task, options.most):
            print(as_text(ours, theirs), end="\n\n")
        return 0
    flips = [*flips_of(plan, options.step, tier, [options.task], options.most)]
    for flip in flips:
        print("gained" if flip.gain > 0 else "lost", as_text(flip.ours, flip.theirs), end="\n\n")
    print(
        f"{len(flips)} questions of {options.task} are shown"
        if flips
        else "nothing was gained or lost"
    )
    return 0
