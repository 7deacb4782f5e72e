"""`init`: a folder to start from, with a configuration, a Snakefile and the Slurm profile."""

import argparse
import json
import os
import shutil
from pathlib import Path

import yaml

from evaluation.command_hints import program
from evaluation.commands import Commands, a_name, a_path, add_command
from evaluation.errors import ConfigError
from evaluation.files import temporary_path, write_text
from evaluation.root import IS_INSTALLED, PROFILE, ROOT, SNAKEFILE, SUITES
from evaluation.settings.config import validate_config
from evaluation.settings.yaml_files import parse_yaml

CONFIG = "config/config.yaml"
_SNAKEFILE = """\
from evaluation.root import SNAKEFILE


include: SNAKEFILE
"""


def add_commands(commands: "Commands[argparse.ArgumentParser]") -> None:
    """Add `init`."""
    command = add_command(
        commands, _init, "write a folder to start from: configuration, Snakefile, Slurm profile"
    )
    command.add_argument(
        "folder",
        type=a_path,
        help="folder to write them into, new or not; its name is that of the stage",
    )
    command.add_argument(
        "--checkpoints", type=a_name, required=True, help="folder that holds one folder per step"
    )
    command.add_argument(
        "--suites",
        action="store_true",
        help=f"also copy the suites, to change them in {SUITES.name}",
    )


def _init(options: argparse.Namespace) -> int:
    """Write a folder to start from, and print the next commands."""
    folder: Path = options.folder
    copied = [PROFILE, SUITES] if options.suites else [PROFILE]
    for name in ("Snakefile", CONFIG, *(source.name for source in copied)):
        if os.path.lexists(folder / name):
            raise ConfigError(f"{folder / name}: is there already; choose another folder")
    text = _configuration(Path(os.path.abspath(folder)).name, options.checkpoints)
    validate_config(parse_yaml(text), f"{CONFIG}, as init would write it for {folder}")
    (folder / CONFIG).parent.mkdir(parents=True, exist_ok=True)
    for source in copied:
        temporary = temporary_path(folder / source.name)
        shutil.copytree(source, temporary, ignore=shutil.ignore_patterns("__pycache__"))
        temporary.rename(folder / source.name)
    write_text(folder / CONFIG, text)
    write_text(folder / "Snakefile", _snakefile())
    names = ", ".join([CONFIG, *(f"{source.name}/" for source in copied), "Snakefile"])
    print(f"{folder} has {names}. Next:\n\n    cd {folder}")
    own = "staged-evaluation" if IS_INSTALLED else program(folder)
    for command in ("snakemake prefill --cores 4", f"{own} doctor", "snakemake --cores 4"):
        print(f"    {command}")
    return 0


def _configuration(name: str, checkpoints: str) -> str:
    """Return `minimal.yaml` with the stage's name and checkpoints filled in."""
    where = checkpoints if checkpoints[0] in "$~" else os.path.abspath(checkpoints)
    return (
        (ROOT / "config" / "minimal.yaml")
        .read_text(encoding="utf-8")
        .replace("Copy it, insert your folder, and run", "In the folder above, run")
        .replace(" --configfile minimal.yaml", "")
        .replace("README.md in this folder", str(ROOT / "config" / "README.md"))
        .replace("my_run:", f"{_scalar(name)}:")
        .replace("/path/to/checkpoints", _scalar(where))
    )


def _scalar(text: str) -> str:
    return yaml.safe_dump(text, width=10**6, allow_unicode=True).splitlines()[0]


def _snakefile() -> str:
    """Return a Snakefile that includes the workflow of the installed package, or of this checkout."""
    including = _SNAKEFILE if IS_INSTALLED else f"include: {json.dumps(str(SNAKEFILE))}\n"
    return f'{including}\n\nworkflow.default_target = "all"\n'
