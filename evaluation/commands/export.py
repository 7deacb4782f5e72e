"""`export`: results in formats that other tools read. Nothing is sent anywhere."""

import argparse
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from evaluation.commands import (
    Commands,
    a_name,
    a_path,
    add_configured,
    chosen_plans,
    plans_with_tables,
    whole_number,
)
from evaluation.errors import ConfigError

if TYPE_CHECKING:
    from evaluation.reporting.sharing.shared_results import SharedCheckpoint
    from evaluation.settings.candidates import Candidate
    from evaluation.settings.plan import StagePlan

CURVES = ("tensorboard", "wandb")
CHECKPOINTS = ("every-eval-ever", "lm-eval", "hf-eval-results")


def add_commands(commands: "Commands[argparse.ArgumentParser]") -> None:
    """Add `export`."""
    command = add_configured(
        commands,
        _export,
        "write results in a format that other tools read",
        stage=False,
        epilog="tensorboard, wandb: the curves of all stages (need `pip install tensorboard` or `wandb`). "
        "every-eval-ever, lm-eval: values and samples of each checkpoint. hf-eval-results: values of the "
        "tasks that --hub-task names, for a model repository of the Hugging Face Hub.",
    )
    command.add_argument(
        "--format", choices=(*CURVES, *CHECKPOINTS), required=True, help="which tool reads it"
    )
    command.add_argument(
        "--output", type=a_path, required=True, metavar="DIR", help="folder for the files"
    )
    command.add_argument(
        "--step", type=whole_number(0), nargs="+", help="only these steps; all that have results"
    )
    command.add_argument(
        "--organization",
        type=a_name,
        metavar="NAME",
        help="who evaluated (every-eval-ever, lm-eval)",
    )
    command.add_argument(
        "--hub-task",
        type=a_name,
        action="append",
        default=[],
        metavar="NAME=DATASET:TASK",
        help="the Hub's benchmark and task of an item here (hf-eval-results); repeat it for others",
    )


def _export(options: argparse.Namespace) -> int:
    """Export curves, or values and samples of checkpoints."""
    if options.format == "every-eval-ever" and options.organization is None:
        raise ConfigError("every-eval-ever names who evaluated; give --organization NAME")
    if options.format == "hf-eval-results" and not options.hub_task:
        raise ConfigError(
            "hf-eval-results needs the Hub's benchmark of each task; give --hub-task "
            "NAME=OWNER/DATASET:TASK for each"
        )
    return _curves(options) if options.format in CURVES else _checkpoints(options)


def _curves(options: argparse.Namespace) -> int:
    from evaluation.reporting.sharing.curves import export_curves
    from evaluation.reporting.sharing.shared_results import scored_candidates

    plans = plans_with_tables(options, partial(_read_stages, options))
    known = {name: scored_candidates(plan) for name, plan in plans.items()}
    _check_steps(options, known)
    number = export_curves(list(plans.values()), options.output, options.format, options.step)
    then = "view them with `tensorboard --logdir`"
    if options.format == "wandb":
        then = f"send them with `wandb sync {shlex.quote(f'{options.output}/wandb')}/offline-run-*`"
    print(f"{number} values in {options.output}; {then}")
    return 0


def _checkpoints(options: argparse.Namespace) -> int:
    from evaluation.reporting.sharing.every_eval_ever import Publisher, write_every_eval_ever
    from evaluation.reporting.sharing.hub_results import HubTask, write_hub_results
    from evaluation.reporting.sharing.lm_eval_files import write_lm_eval_files

    now = int(time.time())
    tasks = dict(HubTask.parse(text) for text in options.hub_task)
    for checkpoint in _shared(options):
        if options.format == "every-eval-ever":
            written = write_every_eval_ever(
                checkpoint, options.output, Publisher(organization=options.organization, now=now)
            )
        elif options.format == "lm-eval":
            developer = options.organization or "local"
            written = [write_lm_eval_files(checkpoint, options.output, now, developer)]
        else:
            written = write_hub_results(checkpoint, options.output, tasks, now)
        for path in written:
            print(path)
    return 0


def _shared(options: argparse.Namespace) -> Iterator["SharedCheckpoint"]:
    """Yield the chosen checkpoints; raise ConfigError if none of the steps has results."""
    from evaluation.reporting.sharing.shared_results import scored_candidates, shared_checkpoint

    plans = plans_with_tables(options, partial(_read_stages, options))
    known = {name: scored_candidates(plan) for name, plan in plans.items()}
    _check_steps(options, known)
    for name, candidates in known.items():
        for candidate in candidates:
            if not options.step or candidate in options.step:
                yield shared_checkpoint(plans[name], candidate)


def _read_stages(
    options: argparse.Namespace, plans: "dict[str, StagePlan]"
) -> "dict[str, StagePlan]":
    """Return the stages that are exported: of those chosen, the ones that have one of the steps."""
    from evaluation.checkpoints.subjects import steps_so_far

    chosen = chosen_plans(options, plans)
    wanted = set(options.step or ())
    having = {
        name: plan for name, plan in chosen.items() if wanted.intersection(steps_so_far(plan))
    }
    return having or chosen


def _check_steps(options: argparse.Namespace, known: "Mapping[str, Sequence[Candidate]]") -> None:
    """Raise ConfigError if one of the steps has no results in any of the stages."""
    for step in options.step or ():
        if not any(step in candidates for candidates in known.values()):
            stages = ", ".join(known)
            raise ConfigError(f"--step {step}: no results of this step in {stages}; leave it out")
