"""`export`: results in formats that other tools read. Nothing is sent anywhere."""

import argparse
import shlex
from functools import partial

from evaluation.commands import (
    Commands,
    a_name,
    a_path,
    add_configured,
    chosen_plans,
    plans_with_tables,
    whole_number,
)


def add_commands(commands: "Commands[argparse.ArgumentParser]") -> None:
    """Add `export`."""
    command = add_configured(
        commands,
        _export,
        "write results in a format that other tools read",
        stage=False,
        epilog="tensorboard, wandb: the curves of all stages (need `pip install tensorboard` or "
        "`wandb`). lm-eval: values and samples of each checkpoint, as lm-evaluation-harness writes them.",
    )
    add, formats = command.add_argument, ("tensorboard", "wandb", "lm-eval")
    add("--format", choices=formats, required=True, help="which tool reads it")
    add("--output", type=a_path, required=True, metavar="DIR", help="folder for the files")
    add("--step", type=whole_number(0), nargs="+", help="only these; all that have results")
    add("--organization", type=a_name, default="local", help="whose model it is (lm-eval)")


def _export(options: argparse.Namespace) -> int:
    """Export curves, or values and samples of checkpoints."""
    from evaluation.reporting.sharing.curves import export_curves
    from evaluation.reporting.sharing.lm_eval_files import write_lm_eval_files

    plans = [*plans_with_tables(options, partial(chosen_plans, options)).values()]
    if options.format == "lm-eval":
        for path in write_lm_eval_files(plans, options.step, options.output, options.organization):
            print(path)
        return 0
    number = export_curves(plans, options.output, options.format, options.step)
    then = "view them with `tensorboard --logdir`"
    if options.format == "wandb":
        then = f"send them with `wandb sync {shlex.quote(f'{options.output}/wandb')}/offline-run-*`"
    print(f"{number} values in {options.output}; {then}")
    return 0
