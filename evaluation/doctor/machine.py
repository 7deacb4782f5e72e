"""Checks this machine's packages, Slurm's commands and the sandbox for code."""

import importlib.metadata
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator

from packaging.requirements import Requirement

from evaluation.doctor.findings import Check, Finding
from evaluation.errors import SandboxError
from evaluation.root import ROOT

PLUGIN = "snakemake-executor-plugin-slurm"
RUNNERS = ("snakemake", PLUGIN, f"{PLUGIN}-jobstep")
"""Packages whose very version matters: what they do when jobs die was tried with the locked one."""
_COMMANDS = ("sbatch", "squeue", "scontrol", "scancel")
_INSTALL = f"run `pip install -r {ROOT}/requirements.lock`"


def check_versions() -> Check:
    """Check what is installed against pyproject.toml (at least) and requirements.lock (tried with).

    Returns:
        The check, with a finding for each package that is missing, too old or untried.
    """
    summary = f"Python {sys.version.split()[0]}, " + ", ".join(
        f"{name.removeprefix('snakemake-executor-plugin-')} {_installed(name) or 'missing'}"
        for name in ("snakemake", PLUGIN, "torch", "transformers")
    )
    return Check("versions", summary, (*_too_old(), *_untried()))


def _installed(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _too_old() -> Iterator[Finding]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for text in project["dependencies"]:
        wanted = Requirement(text)
        found = _installed(wanted.name)
        if found is None:
            yield Finding("fault", wanted.name, f"{wanted.name} is not installed; {_INSTALL}")
        elif not wanted.specifier.contains(found, prereleases=True):
            yield Finding(
                "fault", wanted.name, f"{wanted.name} {found} is not {wanted.specifier}; {_INSTALL}"
            )


def _untried() -> Iterator[Finding]:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    pinned = dict(re.findall(r"^([\w.-]+)==(\S+)", lock, flags=re.MULTILINE))
    for name in RUNNERS:
        found = _installed(name)
        if found not in (None, pinned.get(name)):
            yield Finding(
                "warning",
                name,
                f"{name} is {found}, but all was tried with {pinned.get(name)}, and how Slurm jobs "
                f"are watched over depends on it; {_INSTALL}",
            )


def check_slurm() -> Check:
    """Check that Slurm's commands are there and the controller answers.

    Returns:
        The check; a machine without Slurm is a warning.
    """
    missing = [name for name in _COMMANDS if shutil.which(name) is None]
    if len(missing) == len(_COMMANDS):
        sentence = (
            "Slurm's commands are not on PATH; start from a login node of the cluster, or without "
            "`--profile slurm_profile` to run all jobs on this machine"
        )
        return Check("Slurm", "not on this machine", (Finding("warning", "", sentence),))
    if missing:
        sentence = f"not on PATH: {', '.join(missing)}; load the site's Slurm module"
        return Check("Slurm", "incomplete", (Finding("fault", "", sentence),))
    answer = _ping()
    if "UP" in answer:
        return Check("Slurm", answer)
    sentence = f"the controller does not answer ({answer}); wait until `scontrol ping` shows UP"
    return Check("Slurm", "does not answer", (Finding("warning", "", sentence),))


def _ping() -> str:
    try:
        done = subprocess.run(
            ["scontrol", "ping"], capture_output=True, text=True, check=False, timeout=20
        )
    except subprocess.TimeoutExpired:
        return "nothing within 20 s"
    return " ".join((done.stdout + done.stderr).split())[:160]


def check_sandbox() -> Check:
    """Check where the code of answers would run, though they may be verified on another machine.

    Returns:
        The check; a machine without a sandbox is a warning.
    """
    from evaluation.verification.sandbox.run import describe_sandbox

    try:
        return Check("sandbox", f"code of answers runs in {describe_sandbox()}")
    except SandboxError as error:
        sentence = f"{error} (on the machine that verifies answers)"
        return Check("sandbox", "code of answers cannot run", (Finding("warning", "", sentence),))
