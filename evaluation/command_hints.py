"""Commands that messages tell users to run, with the configuration of this process.

A process that a user starts notes how (`note_command`, `note_run`); the jobs and programs that it starts
find that in their environment.
"""

import argparse
import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from evaluation.root import IS_INSTALLED, PROFILE, ROOT, SNAKEFILE

STARTED_WITH = "EVALUATION_STARTED_WITH"
"""Names to a process the options of Snakemake by which its run was started, as a shell reads them."""

PROGRAM = "EVALUATION_PROGRAM"
"""Has the words that run this program where the user is."""

CONFIG_VARIABLE = "EVALUATION_CONFIG"
"""Names the configuration of a run to its jobs and to the command line."""

DEFAULT_CONFIG = Path("config/config.yaml")

_KEPT = {
    "--profile": None,
    "--workflow-profile": None,
    "--executor": None,
    "--cores": "?",
    "--jobs": "?",
    "--snakefile": None,
    "--directory": None,
    "--configfile": "+",
    "--config": "+",
}
"""Options that a command keeps, with argparse's `nargs`, those last that would take a target."""
_SHORT = {"--executor": "-e", "--cores": "-c", "--jobs": "-j", "--snakefile": "-s"}
_SHORT |= {"--directory": "-d", "--configfile": "--configfiles", "--config": "-C"}
_HOW = ("--profile", "--workflow-profile", "--executor", "--cores", "--jobs")


def note_command(config: Path) -> None:
    """Note the configuration of a command, unless it is a run's, which has noted its own.

    Args:
        config: Configuration file of the command.
    """
    if STARTED_WITH in os.environ and str(config) == os.environ.get(CONFIG_VARIABLE):
        return
    found = any(map(os.path.exists, ("Snakefile", "workflow/Snakefile")))  # by Snakemake, here
    options = [] if found else ["--snakefile", str(SNAKEFILE)]
    os.environ[STARTED_WITH] = shlex.join([*options, *configured(config)])
    os.environ[PROGRAM] = program()


def configured(config: Path) -> list[str]:
    """Return Snakemake's option for a configuration.

    Args:
        config: Configuration file.

    Returns:
        Words of the command line; none for the configuration in its usual place.
    """
    return [] if config == DEFAULT_CONFIG else ["--configfile", str(config)]


def note_run(arguments: Sequence[str]) -> None:
    """Note the arguments of a Snakemake that a user has started.

    Args:
        arguments: Words behind `snakemake`.
    """
    given = _read(arguments).items()
    os.environ[STARTED_WITH] = shlex.join(word for name, all in given for word in (name, *all))
    os.environ[PROGRAM] = program()


def snakemake(target: str) -> str:
    """Return a command of Snakemake for the user to run.

    Args:
        target: Name of a rule or stage. It comes first, as some options take all words behind them.

    Returns:
        `snakemake TARGET …`, with the options of this run.
    """
    options = os.environ.get(STARTED_WITH, "")
    is_given = _read(shlex.split(options)).keys() & set(_HOW) or "SNAKEMAKE_PROFILE" in os.environ
    how = "" if is_given else f"--profile {shlex.quote(_profile())}"
    return " ".join(filter(None, ("snakemake", target, how, options)))


def evaluation(command: str) -> str:
    """Return a command of this program for the user to run.

    Args:
        command: Name of the command, and its arguments without `--config`.

    Returns:
        `python -m evaluation COMMAND …`. It takes one file: that of the run where several were
        merged.
    """
    given = _read(shlex.split(os.environ.get(STARTED_WITH, "")))
    files = given.get("--configfile", [])
    if len(files) > 1 or "--config" in given:
        files = [os.environ[CONFIG_VARIABLE]] if CONFIG_VARIABLE in os.environ else []
    config = f" --config {shlex.quote(files[0])}" if files else ""
    return f"{os.environ.get(PROGRAM) or program()} {command}{config}"


def program(folder: Path = Path()) -> str:
    """Return the words that run this program in a folder.

    Args:
        folder: The folder; the present one if it is not given.

    Returns:
        `python -m evaluation`, after the checkout's `PYTHONPATH` if Python does not find it there.
    """
    found = [str(folder), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    if IS_INSTALLED or any(os.path.realpath(place) == os.path.realpath(ROOT) for place in found):
        return "python -m evaluation"
    return f"PYTHONPATH={shlex.quote(str(ROOT))} python -m evaluation"


def _profile() -> str:
    """Return the one that is shipped, by its name where that is enough."""
    return PROFILE.name if os.path.isdir(PROFILE.name) else str(PROFILE)


def _read(words: Sequence[str]) -> dict[str, list[str]]:
    """Return the options to keep among words of a command line."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for name, number in _KEPT.items():
        names = [name, _SHORT[name]] if name in _SHORT else [name]
        const = "all" if number == "?" else None
        parser.add_argument(*names, dest=name, nargs=number, const=const)
    given = vars(parser.parse_known_args(list(words))[0])
    given = {name: value for name, value in given.items() if value is not None}
    return {n: value if isinstance(value, list) else [value] for n, value in given.items()}
