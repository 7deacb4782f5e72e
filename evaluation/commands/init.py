"""`init`: a folder to start from, with a configuration, a Snakefile and the Slurm profile."""

import argparse
import json
import os
import shlex
import shutil
import sys
from pathlib import Path

import yaml

from evaluation.commands import Commands, a_name, a_pair, a_path, add_command
from evaluation.commands.init_questions import ask
from evaluation.errors import ConfigError
from evaluation.files import temporary_path, write_text
from evaluation.root import IS_INSTALLED, PROFILE, PROFILES, ROOT, SNAKEFILE, SUITES
from evaluation.settings.config import validate_config
from evaluation.settings.names import check_name
from evaluation.settings.objectives import Objective, settled_objective
from evaluation.settings.starting_point import OBJECTIVES, OWN, StartingPoint
from evaluation.settings.starting_point import SUITES as DEFAULT_SUITES
from evaluation.settings.suites import load_suite, merge_suites
from evaluation.settings.yaml_files import parse_yaml, read_yaml
from evaluation.wording import first_few

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
    of = command.add_mutually_exclusive_group()
    of.add_argument("--checkpoints", type=a_name, help="folder that holds one folder per step")
    of.add_argument(
        "--stage",
        type=a_pair,
        action="append",
        metavar="NAME=DIR",
        help="a stage and its folder of checkpoints; repeat it in training order: each is compared with the one before",
    )
    _add_contents(command)
    command.add_argument(
        "--cluster",
        choices=sorted(path.parent.name for path in PROFILES.glob("*/config.yaml")),
        help="profile of your site or machine, in place of the general one",
    )
    command.add_argument(
        "--suites",
        action="store_true",
        help=f"also copy the suites, to change them in {SUITES.name}",
    )


def _add_contents(command: argparse.ArgumentParser) -> None:
    """Add what the configuration says of the stages."""
    command.add_argument(
        "--bridge",
        type=a_name,
        metavar="CKPT",
        help="checkpoint that the first stage is compared with",
    )
    command.add_argument(
        "--objective",
        type=a_name,
        action="append",
        default=[],
        metavar="'TIER [GROUP] improve|keep MARGIN'",
        help=f"what to improve or keep; repeat it for others ({'; '.join(OBJECTIVES)})",
    )
    command.add_argument(
        "--tokenizer", type=a_name, help="hub id or folder; that of the checkpoints"
    )
    command.add_argument(
        "--suite",
        type=a_name,
        action="append",
        metavar="NAME",
        help=f"a suite of {SUITES.name}; repeat it for others ({', '.join(DEFAULT_SUITES)})",
    )
    command.add_argument(
        "--text",
        type=a_pair,
        action="append",
        default=[],
        metavar="NAME=FILES",
        help="own text files (a pattern) as a slice of Tier2; repeat it for others",
    )


def _init(options: argparse.Namespace) -> int:
    """Write a folder to start from, and print the next commands."""
    folder: Path = options.folder
    copied = {_profile(options.cluster): PROFILE} if _is_slurm(options.cluster) else {}
    copied |= {SUITES.name: SUITES} if options.suites else {}
    for name in ("Snakefile", CONFIG, _profile(options.cluster), *copied):
        if os.path.lexists(folder / name):
            raise ConfigError(f"{folder / name}: is there already; choose another folder")
    if not (options.stage or options.checkpoints):
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise ConfigError(
                "name folders by --checkpoints or --stage; on a terminal, `init` asks"
            )
        ask(options, lambda said: _check_suites(_starting_point(said)))
    start = _starting_point(options)
    suite = start.suite()
    text = start.text() if _is_more(options) else _configuration(*next(iter(start.stages.items())))
    validate_config(parse_yaml(text), f"{CONFIG}, as init would write it for {folder}")
    _check_suites(start)
    _check_texts(start)
    profile = _profile(options.cluster)
    text = _fitting(text, options.cluster)
    (folder / CONFIG).parent.mkdir(parents=True, exist_ok=True)
    for name, source in copied.items():
        temporary = temporary_path(folder / name)
        shutil.copytree(source, temporary, ignore=shutil.ignore_patterns("__pycache__"))
        temporary.rename(folder / name)
    if options.cluster is not None:
        (folder / profile).mkdir(exist_ok=True)
        shutil.copyfile(
            PROFILES / options.cluster / "config.yaml", folder / profile / "config.yaml"
        )
    write_text(folder / CONFIG, text)
    if suite is not None:
        (folder / SUITES.name).mkdir(exist_ok=True)
        write_text(folder / SUITES.name / f"{OWN}.yaml", suite)
    write_text(folder / "Snakefile", _snakefile())
    files = [] if suite is None else [f"{SUITES.name}/{OWN}.yaml"]
    folders = [f"{name}/" for name in dict.fromkeys([profile, *copied])]
    names = ", ".join([CONFIG, *folders, *files, "Snakefile"])
    for note in start.notes():
        print(f"note: {note}")
    print(f"{folder} has {names}. Next:\n\n    cd {shlex.quote(str(folder))}")
    package = f"PYTHONPATH={shlex.quote(str(ROOT))} python -m evaluation"
    package = "staged-evaluation" if IS_INSTALLED else package
    how = _how(options.cluster)
    for command in (f"snakemake prefill {how}", f"{package} doctor", f"snakemake {how}"):
        print(f"    {command}")
    return 0


def _starting_point(options: argparse.Namespace) -> StartingPoint:
    """Return what the options say; refuse a stage that is named twice."""
    stages = options.stage or [(_stage_name(options), options.checkpoints)]
    for what, pairs in (("--stage", stages), ("--text", options.text)):
        names = [name for name, _ in pairs]
        for name in names:
            if names.count(name) > 1:
                raise ConfigError(f"{what} {name}: is given twice; give it once, with its own name")
    return StartingPoint(
        stages=dict(stages),
        suites=tuple(options.suite or DEFAULT_SUITES),
        bridge=options.bridge,
        objectives=tuple(options.objective),
        tokenizer=options.tokenizer,
        texts=dict(options.text),
    )


def _stage_name(options: argparse.Namespace) -> str:
    """Return the folder's name; raise ConfigError where no stage can be called that."""
    name = Path(os.path.abspath(options.folder)).name
    try:
        return check_name(name)
    except ValueError as error:
        given = shlex.quote(f"NAME={options.checkpoints}")
        raise ConfigError(
            f"{str(error).removesuffix('; rename it')}; the stage would have the folder's name: name it by "
            f"`--stage {given}` in place of --checkpoints"
        ) from None


def _is_more(options: argparse.Namespace) -> bool:
    """Return whether the options say more than `minimal.yaml` does."""
    more = (options.stage, options.bridge, options.objective, options.tokenizer)
    return any((*more, options.suite, options.text))


def _check_texts(start: StartingPoint) -> None:
    """Refuse texts that prefill could not read: the wrong format, or rows without the field `text`."""
    from evaluation.prefill.sources import locate
    from evaluation.settings.sources import Slice

    for name, pattern in start.texts.items():
        option = f"--text {name}={pattern}"
        split = locate(Slice(files=(pattern,)), {})
        row = next(split.rows(), None)
        if row is None:
            raise ConfigError(f"{option}: has no rows; name files with texts")
        if "text" not in row:
            raise ConfigError(
                f"{option}: its rows have no field `text`, but {first_few(list(row))}; leave the option out, and write "
                f"the slice into a suite with `text: FIELD` ({SUITES.name}/*.yaml, config/README.md)"
            )


def _is_slurm(cluster: str | None) -> bool:
    """Return whether the profile of a site or machine is one for Slurm, as the general one is."""
    if cluster is None:
        return True
    return "executor" in read_yaml(PROFILES / cluster / "config.yaml")


def _profile(cluster: str | None) -> str:
    """Return the name of the profile's folder."""
    return PROFILE.name if _is_slurm(cluster) else "profile"


def _how(cluster: str | None) -> str:
    """Return the option that says where jobs run: on the machine or site that was named, or else here."""
    return "--cores 4" if cluster is None else f"--profile {_profile(cluster)}"


def _fitting(text: str, cluster: str | None) -> str:
    """Return the text of a configuration whose comments say how to run it where it was made for."""
    if cluster is None:
        return text
    other = f"On a cluster, use `--profile {PROFILE.name}` instead of `--cores 4`. "
    return text.replace(other, "").replace("--cores 4", _how(cluster))


def _check_suites(start: StartingPoint) -> None:
    """Refuse a suite that there is not, and objectives that the suites cannot judge."""
    suites = merge_suites([(name, load_suite(SUITES, name)) for name in start.suites], SUITES)
    for stage in start.configuration()["stages"].values():
        for one in stage.get("objective", ()):
            settled_objective(Objective.model_validate(one), suites, "--objective")


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
    return f'{including}\n\nmake_by_default("all")\n'
