"""`export`: curves in formats that other tools read. Nothing is sent anywhere."""

import argparse
import shlex

from evaluation.commands import (
    Commands,
    a_path,
    add_configured,
    chosen_plans,
    configured_plans,
    whole_number,
)


def add_commands(commands: "Commands[argparse.ArgumentParser]") -> None:
    """Add `export`."""
    command = add_configured(
        commands,
        _export,
        "write curves in a format that other tools read",
        stage=False,
        epilog="They need `pip install tensorboard` or `wandb`.",
    )
    formats = ("tensorboard", "wandb")
    command.add_argument("--format", choices=formats, required=True, help="which tool reads it")
    command.add_argument("--output", type=a_path, required=True, metavar="DIR", help="folder")
    command.add_argument(
        "--step", type=whole_number(0), nargs="+", help="only these; by default all"
    )


def _export(options: argparse.Namespace) -> int:
    """Export the curves of the chosen stage, or of all."""
    from evaluation.reporting.sharing.curves import export_curves

    plans = [*chosen_plans(options, configured_plans(options)).values()]
    number = export_curves(plans, options.output, options.format, options.step)
    then = "view them with `tensorboard --logdir`"
    if options.format == "wandb":
        then = f"send them with `wandb sync {shlex.quote(f'{options.output}/wandb')}/offline-run-*`"
    print(f"{number} values in {options.output}; {then}")
    return 0
