"""`inspect`, `verify`, `import-hf`, `merge`: commands for a single checkpoint."""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from evaluation.commands import (
    Commands,
    a_name,
    a_path,
    add_command,
    add_configured,
    chosen_plans,
    configured_plans,
    finite_number,
    whole_number,
)
from evaluation.errors import ConfigError

if TYPE_CHECKING:
    from evaluation.checkpoints.format import Checkpoint


def add_commands(commands: "Commands[argparse.ArgumentParser]") -> None:
    """Add `inspect`, `verify`, `import-hf` and `merge`."""
    command = add_command(
        commands, _inspect, "show what a checkpoint contains, and whether it is complete"
    )
    command.add_argument("checkpoint", type=a_path)
    add_use_mup(command)
    command.add_argument("--json", action="store_true", help="as JSON")

    _add_verify(commands)

    command = add_command(
        commands, _import_hf, "convert a Hugging Face folder to a Nanotron checkpoint"
    )
    command.add_argument("source", type=a_path, help="Hugging Face folder")
    command.add_argument("target", type=a_path, help="folder that gets STEP/ and latest.txt")
    command.add_argument(
        "--tp", type=whole_number(1), default=1, help="tensor parallelism (%(default)s)"
    )
    command.add_argument(
        "--step", type=whole_number(0), default=0, help="step number (%(default)s)"
    )
    command.add_argument("--sequence-length", type=whole_number(2), help="recorded in config.yaml")
    command.add_argument(
        "--tokenizer", type=a_name, help="name recorded in config.yaml (default: SOURCE)"
    )

    command = add_configured(
        commands, _merge, "write a configured merge as a checkpoint", stage=True
    )
    command.add_argument("--name", type=a_name, required=True, help="name of the merge")
    command.add_argument("--output", type=a_path, required=True, help="folder of the checkpoint")


def _add_verify(commands: "Commands[argparse.ArgumentParser]") -> None:
    command = add_command(
        commands, _verify, "compare a checkpoint's logits with stored ones, or with Nanotron's own"
    )
    command.add_argument("checkpoint", type=a_path)
    add_use_mup(command)
    logits = command.add_mutually_exclusive_group(required=True)
    logits.add_argument(
        "--reference", type=a_path, help="safetensors file: input_ids, logits[, position_ids, …]"
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
    command.add_argument(
        "--ids",
        type=a_path,
        help="with --against: safetensors file of input_ids (default: random ones)",
    )
    command.add_argument(
        "--limit", type=whole_number(1), help="with --against: seconds it may take (default: 1800)"
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
    from evaluation.checkpoints.verify import NANOTRON_TOLERANCE, relative_errors

    tolerance = options.tolerance
    if tolerance is None:
        tolerance = NANOTRON_TOLERANCE if options.against else 1e-4
    for name in ("python", "ids", "limit"):
        if options.reference and getattr(options, name) is not None:
            raise ConfigError(f"--{name} goes with --against nanotron; leave it out")
    checkpoint = open_checkpoint(options.checkpoint, use_mup=options.use_mup)
    if options.against:
        error = _against_nanotron(checkpoint, options)
    else:
        error = max(relative_errors(checkpoint, options.reference).values())
    verdict = "within" if error <= tolerance else "more than"
    print(f"relative L2 error: {error:.3e}, {verdict} the tolerance of {tolerance:g}")
    return 0 if error <= tolerance else 1


def _against_nanotron(checkpoint: "Checkpoint", options: argparse.Namespace) -> float:
    """Print each relative error to Nanotron's logits; return the largest."""
    from evaluation.checkpoints.verify import nanotron_errors

    python = Path(os.path.abspath(options.python or sys.executable))
    seconds = options.limit or 1800
    errors = nanotron_errors(checkpoint, python, ids=options.ids, seconds=seconds)
    named = {"logits": "as it reads the rows", "logits_causal": "each row as one document"}
    for key, error in errors.items():
        print(f"{named[key]}: {error:.3e}")
    return max(errors.values())


def _import_hf(options: argparse.Namespace) -> int:
    """Convert a Hugging Face folder to a Nanotron checkpoint, and print its folder."""
    from evaluation.checkpoints.import_hf import import_hf as write

    _check_import(options)
    print(
        write(
            options.source,
            options.target,
            tp=options.tp,
            step=options.step,
            sequence_length=options.sequence_length,
            tokenizer_name=options.tokenizer,
        )
    )
    return 0


def _merge(options: argparse.Namespace) -> int:
    """Write a configured merge as a checkpoint, and print its folder."""
    from evaluation.checkpoints.agreement import check_agreement
    from evaluation.checkpoints.merge import open_subject
    from evaluation.checkpoints.save import write_merge
    from evaluation.checkpoints.subjects import candidate_subject

    (plan,) = chosen_plans(options, configured_plans(options)).values()
    checkpoint = open_subject(candidate_subject(plan, options.name))
    check_agreement(plan, checkpoint)
    write_merge(checkpoint, options.output)
    print(options.output)
    return 0


def _check_import(options: argparse.Namespace) -> None:
    """Raise ConfigError if the target is a file, or the source folder or inside it."""
    target = options.target
    if target.exists() and not target.is_dir():
        raise ConfigError(f"{target}: is a file; give a folder, which gets STEP/ and latest.txt")
    source, place = (Path(os.path.realpath(path)) for path in (options.source, target))
    if place.is_relative_to(source):
        raise ConfigError(f"{target}: is {options.source} or inside it; give another folder")
