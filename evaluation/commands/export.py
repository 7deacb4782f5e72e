"""`export`: curves, or questions and answers, in formats that other tools read. Nothing is sent anywhere."""

import argparse
import shlex

from evaluation.commands import (
    Commands,
    a_path,
    add_configured,
    chosen_plans,
    plans_with_known_steps,
    whole_number,
)


def add_commands(commands: "Commands[argparse.ArgumentParser]") -> None:
    """Add `export`."""
    command = add_configured(
        commands,
        _export,
        "write curves, or questions and answers, in a format that other tools read",
        stage=False,
        epilog="tensorboard, wandb: curves; they need `pip install` of that name. inspect: every question "
        "with its answers, for `inspect view` (`pip install inspect-ai`, anywhere).",
    )
    formats = ("tensorboard", "wandb", "inspect")
    command.add_argument("--format", choices=formats, required=True, help="which tool reads it")
    command.add_argument("--output", type=a_path, required=True, metavar="DIR", help="folder")
    command.add_argument(
        "--step", type=whole_number(0), nargs="+", help="only these; by default all"
    )


def _export(options: argparse.Namespace) -> int:
    """Export the curves, or the answers, of the chosen stage, or of all."""
    from evaluation.reporting.inspect_logs import write_logs
    from evaluation.reporting.sharing.curves import export_curves

    plans = [*chosen_plans(options, plans_with_known_steps(options)).values()]
    if options.format == "inspect":
        logs = [log for plan in plans for log in write_logs(plan, options.output, options.step)]
        folder = shlex.quote(str(options.output))
        print(f"{len(logs)} logs in {options.output}; `inspect view --log-dir {folder}` shows them")
        return 0
    number = export_curves(plans, options.output, options.format, options.step)
    then = "view them with `tensorboard --logdir`"
    if options.format == "wandb":
        then = f"send them with `wandb sync {shlex.quote(f'{options.output}/wandb')}/offline-run-*`"
    print(f"{number} values in {options.output}; {then}")
    return 0
