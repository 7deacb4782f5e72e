"""`watch`: evaluates checkpoints as a training run saves them."""

import argparse
import os
import signal

from evaluation.commands import Commands, add_configured, finite_number, whole_number
from evaluation.errors import ConfigError

HOW = ("--cores", "-c", "--jobs", "-j", "--profile", "--executor", "-e")
"""Arguments of Snakemake that decide where jobs run."""

OWN = ("--config", "-C", "--configfile", "--configfiles")
"""Refused arguments, which would give Snakemake another configuration than the watched one."""


def add_commands(commands: "Commands[argparse.ArgumentParser]") -> None:
    """Add `watch`."""
    command = add_configured(
        commands,
        _watch,
        "evaluate checkpoints as training saves them",
        stage=False,
        usage="%(prog)s [options] -- SNAKEMAKE ARGUMENTS",
        epilog="Exit code: that of the last Snakemake; 1 if it could not start; 130, 143: Ctrl-C, SIGTERM.",
    )
    command.add_argument(
        "--interval",
        type=finite_number(0.1),
        default=300.0,
        help="seconds between two looks (%(default)g)",
    )
    command.add_argument(
        "--until-step",
        type=whole_number(0),
        help="end when this step, or a later one, is evaluated",
    )
    command.add_argument(
        "--then",
        metavar="COMMAND",
        help="shell command after each round, such as an export (docs/watching.md)",
    )
    command.add_argument("--once", action="store_true", help="look once, evaluate what is ready")
    command.add_argument(
        "snakemake",
        nargs="*",
        metavar="-- …",
        help="options of Snakemake: `-- --profile slurm_profile`",
    )


def _watch(options: argparse.Namespace) -> int:
    """Evaluate checkpoints as training saves them."""
    from evaluation.flow.watch import Watched, watch

    # A background process of a shell ignores SIGINT; Snakemake would inherit that and could not be stopped.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    watched = Watched(
        options.config.absolute(), options.stage, _arguments(options.snakemake), options.interval,
        options.until_step, options.once, options.then,
    )  # fmt: skip
    return watch(watched)


def _arguments(given: list[str]) -> list[str]:
    """Return the arguments for Snakemake; raise ConfigError if they cannot be used."""
    if given and not given[0].startswith("-"):
        raise ConfigError(
            f"{given[0]!r}: `watch` chooses the targets; after `--`, give only options of Snakemake"
        )
    names = [word.partition("=")[0] for word in given]
    for name in names:
        if name in OWN:
            raise ConfigError(f"{name}: give the configuration to `watch` itself, before the `--`")
    if not any(name.startswith(HOW) for name in names) and "SNAKEMAKE_PROFILE" not in os.environ:
        raise ConfigError(
            "Snakemake's options are missing. End the command with `-- --profile slurm_profile` on a "
            "cluster, or with `-- --cores 4` to run on this machine"
        )
    return given
