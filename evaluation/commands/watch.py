"""`watch`: evaluates checkpoints as a training run saves them."""

import argparse
import os
import signal

from evaluation.commands import Commands, add_configured, finite_number, whole_number
from evaluation.errors import ConfigError
from evaluation.settings.config import load_config
from evaluation.settings.planning import named_stage

HOW = ("--cores", "-c", "--jobs", "-j", "--profile", "--executor", "-e")
"""Arguments of Snakemake that decide where jobs run."""

OWN = ("--config", "-C", "--configfile", "--configfiles")
"""Refused arguments, which would give Snakemake another configuration than the watched one."""

SHORTEST = 0.1
"""Least seconds between two checks: without a pause they would keep the file system busy."""


def add_commands(commands: "Commands[argparse.ArgumentParser]") -> None:
    """Add `watch`."""
    command = add_configured(
        commands,
        _watch,
        "evaluate checkpoints as training saves them",
        stage=False,
        usage="%(prog)s [options] -- SNAKEMAKE ARGUMENTS",
        epilog="Exit code 0: it ended as intended. 1: an evaluation or a page failed (its line has the "
        "reason), or it could not start. 130, 143: Ctrl-C, SIGTERM.",
    )
    command.add_argument(
        "--interval",
        type=finite_number(SHORTEST),
        default=300.0,
        help="seconds between two checks (%(default)g)",
    )
    command.add_argument(
        "--quiet",
        type=finite_number(0),
        default=10.0,
        help="seconds in which no file of a checkpoint may change (%(default)g)",
    )
    command.add_argument(
        "--until-step",
        type=whole_number(0),
        help="end when this step, or a later one, is evaluated",
    )
    command.add_argument(
        "--give-up",
        type=finite_number(0),
        metavar="HOURS",
        help="end when no new checkpoint has come for this long",
    )
    command.add_argument("--once", action="store_true", help="check once, evaluate what is ready")
    command.add_argument(
        "snakemake",
        nargs="*",
        metavar="-- …",
        help="options of Snakemake: `-- --profile slurm_profile`",
    )


def _watch(options: argparse.Namespace) -> int:
    """Evaluate checkpoints as training saves them; return 1 if an evaluation or a page failed."""
    from evaluation.watching.watch import Options, Watcher

    # A background process of a shell ignores SIGINT; Snakemake would inherit that and could not be stopped.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config = load_config(options.config)
    if options.stage is not None:
        named_stage(config.stages, options.stage, options.config)
    settings = Options(
        configuration=options.config.absolute(),
        stages=(options.stage,) if options.stage else tuple(config.stages),
        interval=options.interval,
        quiet=options.quiet,
        until_step=options.until_step,
        give_up=None if options.give_up is None else options.give_up * 3600,
        once=options.once,
        arguments=_arguments(options.snakemake),
    )
    return Watcher(config, settings).watch()


def _arguments(given: list[str]) -> tuple[str, ...]:
    """Return the arguments for Snakemake; raise ConfigError if they cannot be used."""
    if given and not given[0].startswith("-"):
        raise ConfigError(
            f"{given[0]!r}: `watch` chooses the targets; after `--`, give only options of Snakemake"
        )
    names = [word.partition("=")[0] for word in given]
    for name in names:
        if name in OWN:
            raise ConfigError(f"{name}: give the configuration to `watch` itself, before the `--`")
    is_given = any(name.startswith(HOW) for name in names) or "SNAKEMAKE_PROFILE" in os.environ
    if not is_given:
        raise ConfigError(
            "Snakemake's options are missing. End the command with `-- --profile slurm_profile` on a "
            "cluster, or with `-- --cores 4` to run on this machine"
        )
    return tuple(given)
