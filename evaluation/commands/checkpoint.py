"""`inspect`, `verify`, `merge`: commands for a single checkpoint."""

import argparse
import json
import os
import sys
from pathlib import Path

from evaluation.commands import (
    Commands,
    a_path,
    add_command,
    finite_number,
    whole_number,
)
from evaluation.errors import ConfigError


def add_commands(commands: "Commands[argparse.ArgumentParser]") -> None:
    """Add `inspect`, `verify` and `merge`."""
    command = add_command(
        commands, _inspect, "show what a checkpoint contains, and whether it is complete"
    )
    command.add_argument("checkpoint", type=a_path)
    add_use_mup(command)
    command.add_argument("--json", action="store_true", help="as JSON")

    _add_verify(commands)

    command = add_command(commands, _merge, "write the mean of checkpoints, which a stage can list")
    command.add_argument("folder", type=a_path, nargs="+", help="checkpoints, or a folder of steps")
    which = command.add_mutually_exclusive_group()
    which.add_argument("--last", type=whole_number(2), help="how many of the last steps")
    which.add_argument("--steps", type=whole_number(0), nargs="+", help="which steps")
    command.add_argument("--weights", type=finite_number(0), nargs="+", help="(default: all equal)")
    add_use_mup(command)
    command.add_argument("--output", type=a_path, required=True, help="folder of the mean")


def _add_verify(commands: "Commands[argparse.ArgumentParser]") -> None:
    command = add_command(
        commands, _verify, "compare a checkpoint's logits with stored ones, or with Nanotron's own"
    )
    command.add_argument("checkpoint", type=a_path)
    add_use_mup(command)
    logits = command.add_mutually_exclusive_group(required=True)
    logits.add_argument(
        "--reference", type=a_path, help="safetensors file: input_ids, logits[, position_ids]"
    )
    logits.add_argument(
        "--against", choices=("nanotron",), help="run Nanotron's code on it, which needs a GPU"
    )
    command.add_argument(
        "--tolerance", type=finite_number(0), help="relative L2 (1e-4; against nanotron 0.05)"
    )
    command.add_argument(
        "--python",
        type=a_path,
        help="with --against: Python of an environment that has it (default: this one)",
    )


def add_use_mup(command: argparse.ArgumentParser) -> None:
    """Add `--use-mup`, for commands that take a checkpoint which may lack config.yaml."""
    command.add_argument(
        "--use-mup",
        action=argparse.BooleanOptionalAction,
        help="for a checkpoint without config.yaml, where this is recorded",
    )


def _inspect(options: argparse.Namespace) -> int:
    """Print what a checkpoint contains, and whether it is complete."""
    from evaluation.checkpoints.format import open_checkpoint
    from evaluation.checkpoints.inspect import describe

    facts = describe(open_checkpoint(options.checkpoint, use_mup=options.use_mup))
    if options.json:
        print(json.dumps(facts, indent=1))
        return 0
    width = max(map(len, facts))
    for name, value in facts.items():
        print(f"{name:<{width}}  {json.dumps(value) if isinstance(value, dict | list) else value}")
    return 0


def _verify(options: argparse.Namespace) -> int:
    """Compare logits with stored or Nanotron's logits; return 1 if they differ beyond the tolerance."""
    from evaluation.checkpoints.format import open_checkpoint
    from evaluation.checkpoints.verify import NANOTRON_TOLERANCE, nanotron_error, relative_error

    tolerance = options.tolerance
    if tolerance is None:
        tolerance = NANOTRON_TOLERANCE if options.against else 1e-4
    if options.reference and options.python:
        raise ConfigError("--python goes with --against nanotron; leave it out")
    checkpoint = open_checkpoint(options.checkpoint, use_mup=options.use_mup)
    if options.against:
        python = Path(os.path.abspath(options.python or sys.executable))
        error = nanotron_error(checkpoint, python)
    else:
        error = relative_error(checkpoint, options.reference)
    verdict = "within" if error <= tolerance else "more than"
    print(f"relative L2 error: {error:.3e}, {verdict} the tolerance of {tolerance:g}")
    return 0 if error <= tolerance else 1


def _merge(options: argparse.Namespace) -> int:
    """Average checkpoints, and print the folder of their mean."""
    from evaluation.checkpoints.merge import write_mean
    from evaluation.checkpoints.subjects import find_steps
    from evaluation.settings.checkpoint_folders import step_folder

    paths = options.folder
    if options.last or options.steps:
        steps = find_steps(paths[0], tuple(options.steps) if options.steps else "all")
        steps = steps[-options.last :] if options.last else steps
        paths = [step_folder(paths[0], step) for step in steps]
    weights = options.weights or [1.0] * len(paths)
    if len(paths) < (options.last or 2) or len(weights) != len(paths) or not all(weights):
        raise ConfigError(
            f"{len(paths)} checkpoints: give {options.last or 2} or more, and weights above 0 for all or none"
        )
    write_mean(paths, weights, options.output, options.use_mup)
    print(options.output)
    return 0
