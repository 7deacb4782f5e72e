"""Checks this machine: GPU, packages, Slurm's commands, and the sandbox for code."""

import importlib.metadata
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from typing import Literal

import torch
from packaging.requirements import Requirement

from evaluation.doctor.findings import Check, Finding
from evaluation.errors import SandboxError
from evaluation.scoring.engine.device import why_unusable
from evaluation.scoring.visible_gpus import VISIBLE, are_here, holders, visible_names
from evaluation.version import ROOT

PLUGIN = "snakemake-executor-plugin-slurm"
RUNNERS = ("snakemake", PLUGIN, f"{PLUGIN}-jobstep")
"""Packages that need the locked version: their handling of dying jobs was tested with it alone."""
_COMMANDS = ("sbatch", "squeue", "scontrol", "scancel")
_INSTALL = f"run `pip install -r {shlex.quote(str(ROOT))}/locks/requirements.lock`"


def check_versions() -> Check:
    """Check installed versions against pyproject.toml (least) and locks/requirements.lock (tested)."""
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
        installed = _installed(wanted.name)
        if installed is None:
            yield Finding("fault", wanted.name, f"{wanted.name} is not installed; {_INSTALL}")
        elif not wanted.specifier.contains(installed, prereleases=True):
            yield Finding(
                "fault",
                wanted.name,
                f"{wanted.name} {installed} is not {wanted.specifier}; {_INSTALL}",
            )


def _untried() -> Iterator[Finding]:
    lock = (ROOT / "locks/requirements.lock").read_text(encoding="utf-8")
    pinned = dict(re.findall(r"^([\w.-]+)==(\S+)", lock, flags=re.MULTILINE))
    for name in RUNNERS:
        installed = _installed(name)
        if installed not in (None, pinned.get(name)):
            yield Finding(
                "warning",
                name,
                f"{name} is {installed}, but only {pinned.get(name)} was tested, and the handling of Slurm "
                f"jobs depends on it; {_INSTALL}",
            )


def check_slurm() -> Check:
    """Check that Slurm's commands exist and the controller answers; without Slurm a warning."""
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


def check_sandbox(kind: Literal["seccomp", "none"]) -> Check:
    """Check the sandbox for the code of answers on this machine; none is a warning, as another may verify."""
    from evaluation.verification.sandbox.run import describe_sandbox

    try:
        confined = describe_sandbox(kind)
    except SandboxError as error:
        sentence = f"{error} (on the machine that verifies answers)"
        return Check("sandbox", "code of answers cannot run", (Finding("warning", "", sentence),))
    if kind == "none":
        sentence = "verification.sandbox is none: code of answers may do all that you may"
        return Check("sandbox", "code of answers runs in none", (Finding("warning", "", sentence),))
    return Check("sandbox", f"code of answers runs in {confined}")


def check_gpu() -> Check:
    """Check that PyTorch can use a GPU, and who holds its memory; a machine without one has no fault."""
    if not torch.cuda.is_available():
        summary = "none on this machine; each job checks its own before it loads a model"
        findings = (Finding("fault", "", why_unusable()),) if are_here() else ()
        return Check("GPU", summary, findings)
    names = ", ".join(map(torch.cuda.get_device_name, range(torch.cuda.device_count())))
    others = holders(visible_names())
    sentence = f"its memory is also held by {others}; end them, or choose another by {VISIBLE}"
    return Check("GPU", names, (Finding("warning", "", sentence),) if others else ())
