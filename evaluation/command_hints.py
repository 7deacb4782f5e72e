"""Builds the commands that messages tell users to run, with the configuration of this process.

A process that a user starts stores how it was started in its environment (`note_command`, `note_run`),
where its jobs and programs find it.
"""

import argparse
import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from evaluation.root import IS_INSTALLED, PROFILE, ROOT, SNAKEFILE

STARTED_WITH = "EVALUATION_STARTED_WITH"
"""Environment variable with the Snakemake options of the run, quoted for a shell."""

PROGRAM = "EVALUATION_PROGRAM"
"""Environment variable with the words that run this program in the user's folder."""

CONFIG_VARIABLE = "EVALUATION_CONFIG"
"""Environment variable with the configuration file of a run, for its jobs and for commands."""

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
"""Options that a suggested command keeps, with their `nargs`; last those that could swallow a target."""
_SHORT = {"--executor": "-e", "--cores": "-c", "--jobs": "-j", "--snakefile": "-s"}
_SHORT |= {"--directory": "-d", "--configfile": "--configfiles", "--config": "-C"}
_HOW = ("--profile", "--workflow-profile", "--executor", "--cores", "--jobs")


LOCAL_PROFILE = "profile"
"""Folder that `init` writes a profile into which is for a machine without Slurm."""


def note_command(config: Path) -> None:
    """Store the configuration of a command, unless the command belongs to a run, which has stored it."""
    if STARTED_WITH in os.environ and str(config) == os.environ.get(CONFIG_VARIABLE):
        return
    found = any(map(os.path.exists, ("Snakefile", "workflow/Snakefile")))  # Snakemake finds it here
    options = [] if found else ["--snakefile", str(SNAKEFILE)]
    os.environ[STARTED_WITH] = shlex.join([*options, *configured(config)])
    os.environ[PROGRAM] = program()


def configured(config: Path) -> list[str]:
    """Return Snakemake's option for a configuration; none for the default one."""
    return [] if config == DEFAULT_CONFIG else ["--configfile", str(config)]


def note_run(arguments: Sequence[str]) -> None:
    """Store the words after `snakemake` in the command that a user has started."""
    given = _read(arguments).items()
    os.environ[STARTED_WITH] = shlex.join(word for name, all in given for word in (name, *all))
    os.environ[PROGRAM] = program()


def snakemake(target: str) -> str:
    """Return a Snakemake command for the user to run, with the options of this run."""
    options = os.environ.get(STARTED_WITH, "")
    is_given = _read(shlex.split(options)).keys() & set(_HOW) or "SNAKEMAKE_PROFILE" in os.environ
    how = "" if is_given else f"--profile {shlex.quote(_profile())}"
    return " ".join(filter(None, ("snakemake", target, how, options)))


def evaluation(command: str) -> str:
    """Return a command of this program with arguments and the run's configuration for the user to run."""
    given = _read(shlex.split(os.environ.get(STARTED_WITH, "")))
    files = given.get("--configfile", [])
    if len(files) > 1 or "--config" in given:
        files = [os.environ[CONFIG_VARIABLE]] if CONFIG_VARIABLE in os.environ else []
    config = f" --config {shlex.quote(files[0])}" if files else ""
    return f"{os.environ.get(PROGRAM) or program()} {command}{config}"


def program(folder: Path = Path()) -> str:
    """Return the words that run this program in a folder.

    Returns:
        `python -m evaluation`, preceded by `PYTHONPATH=…` if Python does not find the package there.
    """
    found = [str(folder), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    if IS_INSTALLED or any(os.path.realpath(place) == os.path.realpath(ROOT) for place in found):
        return "python -m evaluation"
    return f"PYTHONPATH={shlex.quote(str(ROOT))} python -m evaluation"


def _profile() -> str:
    """Return the shipped profile, by its name if it is in the current folder, or what `init` wrote there."""
    here = filter(os.path.isdir, (PROFILE.name, LOCAL_PROFILE))
    return next(here, str(PROFILE))


def _read(words: Sequence[str]) -> dict[str, list[str]]:
    """Return the options of a command line that suggested commands keep."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for name, number in _KEPT.items():
        names = [name, _SHORT[name]] if name in _SHORT else [name]
        const = "all" if number == "?" else None
        parser.add_argument(*names, dest=name, nargs=number, const=const)
    given = vars(parser.parse_known_args(list(words))[0])
    given = {name: value for name, value in given.items() if value is not None}
    return {n: value if isinstance(value, list) else [value] for n, value in given.items()}
