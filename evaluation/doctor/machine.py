"""Checks this machine: GPU, driver and compiler, packages, Slurm's commands, and the sandbox for code."""

import importlib.metadata
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator

import torch
from packaging.requirements import Requirement

from evaluation.checkpoints.merge import open_subject
from evaluation.checkpoints.subjects import Subject
from evaluation.doctor.findings import Check, Finding
from evaluation.errors import EvaluationError, SandboxError, ScoringError
from evaluation.root import ROOT
from evaluation.scoring.engine.device import amd_fault, compiler_fault, why_unusable
from evaluation.scoring.engine.footprint import CONTEXT, Footprint, footprint, gigabytes, too_large
from evaluation.scoring.engine.gpus import HELD, Gpu, visible_gpus
from evaluation.settings.plan import StagePlan

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


def check_sandbox() -> Check:
    """Check the sandbox for the code of answers on this machine; none is a warning, as another may verify."""
    from evaluation.verification.sandbox.run import describe_sandbox

    try:
        return Check("sandbox", f"code of answers runs in {describe_sandbox()}")
    except SandboxError as error:
        sentence = f"{error} (on the machine that verifies answers)"
        return Check("sandbox", "code of answers cannot run", (Finding("warning", "", sentence),))


def check_gpu() -> Check:
    """Check the GPU, its driver and the compiler; a machine without a GPU has no fault."""
    try:
        gpus = visible_gpus()
        findings = tuple(_gpu_findings(gpus))
    except ScoringError as error:
        return Check("GPU", "cannot be used", (Finding("fault", "", str(error)),))
    if not gpus:
        unused = amd_fault()
        findings = () if unused is None else (Finding("warning", "", unused),)
        summary = "none on this machine; each job checks its own before it loads a model"
        return Check("GPU", summary, findings)
    return Check("GPU", ", ".join(gpu.title for gpu in gpus[:4]), findings)


def _gpu_findings(gpus: list[Gpu]) -> Iterator[Finding]:
    """Yield remarks on all GPUs; only the first one is used, so only it can have a fault."""
    for number, gpu in enumerate(gpus):
        if (remark := gpu.remark) is not None:
            is_held = gpu.memory_in_use > HELD and number == 0
            yield Finding("fault" if is_held else "warning", "", remark)
    if gpus:
        yield from _torch_findings(gpus[0])


def _torch_findings(gpu: Gpu) -> Iterator[Finding]:
    """Yield what keeps PyTorch from using a GPU, or from compiling for it."""
    if not torch.cuda.is_available():
        yield Finding("fault", "", why_unusable(gpu))
    elif (lacking := compiler_fault()) is not None:
        yield Finding(
            "warning", "", f"{lacking}; until then layers run uncompiled, which is slower"
        )


def check_gpu_memory(subjects: Iterable[Subject]) -> Check:
    """Check the memory that each stage's model needs, against this machine's GPU if it has one.

    Only one checkpoint per stage is read; `check_checkpoints` reports those that cannot be read.
    """
    gpu = _first_gpu()
    summaries: dict[str, None] = {}
    findings: list[Finding] = []
    for subject in _one_of_each(subjects):
        try:
            checkpoint, scoring = open_subject(subject), subject.plan.config.scoring
            name = checkpoint.dtype if scoring.dtype == "auto" else scoring.dtype
            needs = footprint(checkpoint, getattr(torch, name), scoring.gpus_per_checkpoint)
        except (EvaluationError, OSError):
            continue
        whole = needs.with_pass(_longest_pass(subject.plan))
        summaries[f"{subject.plan.name} needs {gigabytes(whole)} in {name}"] = None
        if gpu is not None and (short := _shortage(subject, gpu, needs, name)) is not None:
            findings.append(short)
    here = "no GPU here" if gpu is None else f"{gpu.title} has {gigabytes(_total(gpu))}"
    return Check("GPU memory", "; ".join([*summaries, here]), tuple(findings))


def _first_gpu() -> Gpu | None:
    try:
        gpus = visible_gpus()
    except ScoringError:  # check_gpu reports it
        return None
    return gpus[0] if gpus and gpus[0].total is not None else None


def _one_of_each(subjects: Iterable[Subject]) -> list[Subject]:
    """Return one step, merge and bridge of each stage that the built-in engine scores."""
    by_kind: dict[tuple[str, str], Subject] = {}
    for subject in subjects:
        if subject.plan.config.scoring.device != "cpu" and not subject.plan.stage.command:
            by_kind.setdefault((subject.plan.name, subject.role), subject)
    return list(by_kind.values())


def _longest_pass(plan: StagePlan) -> int:
    """Return the tokens of a forward pass: a packed row holds at least one whole sequence."""
    return max(plan.config.scoring.row_tokens, plan.sequence_length)


def _total(gpu: Gpu) -> int:
    """Return a GPU's memory in bytes; `Gpu.total` is in MiB."""
    return (gpu.total or 0) << 20


def _shortage(subject: Subject, gpu: Gpu, needs: Footprint, dtype: str) -> Finding | None:
    """Return a finding if a GPU has too little memory, or too little free memory."""
    name, total = subject.plan.name, _total(gpu)
    least, tokens = CONTEXT + needs.weights, _longest_pass(subject.plan)
    if least > total:
        sentence = too_large(subject.checkpoint, getattr(torch, dtype), least, total)
        return Finding("fault", name, sentence)
    free = total - ((gpu.used or 0) << 20)
    if needs.with_pass(tokens) <= free:
        return None
    sentence = (
        f"passes of {tokens:,} tokens need about {gigabytes(needs.with_pass(tokens))} in {dtype}, and "
        f"{gigabytes(free)} of {gpu.title} are free, so a job would halve them until they fit; free "
        "it, or lower scoring.row_tokens"
    )
    return Finding("warning", name, sentence)
