"""`watch`: evaluates checkpoints as a training run saves them."""

import argparse
import math
import os
import signal
from collections.abc import Callable

from evaluation.command_hints import configured, note_run
from evaluation.commands import add_config, add_stage, whole_number
from evaluation.commands.prefill import Commands
from evaluation.errors import ConfigError
from evaluation.settings.config import load_config

HOW = ("--cores", "-c", "--jobs", "-j", "--profile", "--executor", "-e")
"""Arguments of Snakemake that say where jobs run."""

OWN = ("--config", "-C", "--configfile", "--configfiles")
"""Those by which Snakemake would get another configuration than the one that is watched."""

SHORTEST = 0.1
"""Seconds between two looks: without a pause they would keep a file system busy."""


def add_commands(commands: "Commands[argparse.ArgumentParser]") -> None:
    command = commands.add_parser(
        "watch",
        help="evaluate checkpoints as training saves them",
        usage="%(prog)s [options] -- SNAKEMAKE ARGUMENTS",
        epilog="Exit code 0: it came to its end. 1: some evaluation or page failed, as its line says, or "
        "it could not start. 130, 143: Ctrl-C, SIGTERM.",
    )
    add_config(command)
    add_stage(command, required=False)
    command.add_argument(
        "--interval",
        type=_seconds(SHORTEST),
        default=300.0,
        help="seconds between two looks (%(default)g)",
    )
    command.add_argument(
        "--quiet",
        type=_seconds(0),
        default=10.0,
        help="seconds in which no file of a checkpoint may change (%(default)g)",
    )
    command.add_argument(
        "--until-step",
        type=whole_number(0),
        help="end when this step, or a later one, is evaluated",
    )
    command.add_argument(
        "--give-up", type=_seconds(0), metavar="HOURS", help="end when nothing new came for so long"
    )
    command.add_argument("--once", action="store_true", help="one look, and what follows from it")
    command.add_argument(
        "snakemake", nargs="*", metavar="-- …", help="how it runs: `-- --profile slurm_profile`"
    )
    command.set_defaults(run=watch)


def _seconds(at_least: float) -> Callable[[str], float]:
    def read(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not at_least <= number < 1e9:
            raise argparse.ArgumentTypeError(f"{text!r} is no number from {at_least:g} on")
        return number

    return read


def watch(options: argparse.Namespace) -> int:
    from evaluation.watching.watch import Options, Watcher

    # A shell's background process ignores it, and so would the Snakemake that is stopped by it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config = load_config(options.config)
    if options.stage is not None and options.stage not in config.stages:
        raise ConfigError(
            f"{options.config}: no stage {options.stage!r}; there are {', '.join(config.stages)}"
        )
    note_run([*options.snakemake, *configured(options.config)])
    told = Options(
        configuration=options.config.absolute(),
        stages=(options.stage,) if options.stage else tuple(config.stages),
        interval=options.interval,
        quiet=options.quiet,
        until_step=options.until_step,
        give_up=None if options.give_up is None else options.give_up * 3600,
        once=options.once,
        arguments=_arguments(options.snakemake),
    )
    return Watcher(config, told).watch()


def _arguments(given: list[str]) -> tuple[str, ...]:
    """Snakemake's own arguments; raises ConfigError where they cannot do."""
    if given and not given[0].startswith("-"):
        raise ConfigError(
            f"{given[0]!r}: `watch` itself decides what is made; after `--`, give options of Snakemake only"
        )
    names = [word.partition("=")[0] for word in given]
    for name in names:
        if name in OWN:
            raise ConfigError(f"{name}: give the configuration to `watch` itself, before the `--`")
    is_told = any(name.startswith(HOW) for name in names) or "SNAKEMAKE_PROFILE" in os.environ
    if not is_told:
        raise ConfigError(
            "how is Snakemake to run? End the command with `-- --profile slurm_profile` on a cluster, "
            "or with `-- --cores 4` to run on this machine"
        )
    return tuple(given)
