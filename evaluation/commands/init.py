"""`init`: a folder to start from, with the smallest configuration, a Snakefile and the profiles."""

import argparse
import json
import os
import shlex
import shutil
from pathlib import Path

import yaml

from evaluation.commands import Commands, a_name, a_path, add_command
from evaluation.errors import ConfigError
from evaluation.files import write_text
from evaluation.settings.config import validate_config
from evaluation.settings.yaml_files import parse_yaml
from evaluation.version import IS_INSTALLED, PROFILE, ROOT, SNAKEFILE, SUITES

CONFIG = "config/config.yaml"
COPIED = (PROFILE.name, "workflow/profiles/default")
_INCLUDING = """\
from evaluation.version import SNAKEFILE


include: SNAKEFILE
"""


_DEFAULT = """

rule default:
    default_target: True
    input:
        rules.all.input,
    localrule: True
"""


def add_commands(commands: "Commands[argparse.ArgumentParser]") -> None:
    """Add `init`."""
    command = add_command(
        commands, _init, "write a folder to start from: configuration, Snakefile, profiles"
    )
    command.add_argument("folder", type=a_path, help="where; its name is that of the stage")
    checkpoints = "folder that holds one folder per step"
    command.add_argument("--checkpoints", type=a_name, required=True, help=checkpoints)
    command.add_argument("--suites", action="store_true", help="also copy the suites")


def _init(options: argparse.Namespace) -> int:
    """Write a folder to start from, and print the next commands."""
    folder: Path = options.folder
    copied = [*COPIED, *([SUITES.name] if options.suites else [])]
    for name in ("Snakefile", CONFIG, *copied):
        if os.path.lexists(folder / name):
            raise ConfigError(f"{folder / name}: is there already; choose another folder")
    text = _configuration(os.path.basename(os.path.abspath(folder)), options.checkpoints)
    validate_config(parse_yaml(text), f"{CONFIG}, as init would write it for {folder}")
    (folder / CONFIG).parent.mkdir(parents=True, exist_ok=True)
    for name in copied:
        shutil.copytree(ROOT / name, folder / name.removeprefix("workflow/"))
    write_text(folder / CONFIG, text)
    including = _INCLUDING if IS_INSTALLED else f"include: {json.dumps(str(SNAKEFILE))}\n"
    write_text(folder / "Snakefile", f"{including}{_DEFAULT}")
    package = f"PYTHONPATH={shlex.quote(str(ROOT))} python -m evaluation"
    package = "staged-evaluation" if IS_INSTALLED else package
    print(f"{folder} has {', '.join([CONFIG, *copied, 'Snakefile'])}. Next:\n")
    for line in (f"cd {shlex.quote(str(folder))}", "snakemake prefill --cores 4",
                 f"{package} doctor", "snakemake --cores 4"):  # fmt: skip
        print(f"    {line}")
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
