"""Checks the GPU of this machine, its memory, driver and compiler."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import torch

from evaluation.checkpoints.merge import open_subject
from evaluation.checkpoints.subjects import Subject
from evaluation.doctor.disk_space import nearest, write_problem
from evaluation.doctor.findings import Check, Finding
from evaluation.errors import EvaluationError, ScoringError
from evaluation.scoring.engine import compile_cache
from evaluation.scoring.engine.device import amd_fault, compiler_fault, why_unusable
from evaluation.scoring.engine.footprint import CONTEXT, Footprint, footprint, gigabytes, too_large
from evaluation.scoring.engine.gpus import HELD, Gpu, memory_in_use, remark_on, visible_gpus
from evaluation.settings.plan import StagePlan


def check_gpu() -> Check:
    """Check the GPU itself, its driver, and a compiler; to have none is no fault.

    Returns:
        The check, with remarks on others that use the GPU.
    """
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
    """The first GPU is the one that is used; the others are only mentioned."""
    for number, gpu in enumerate(gpus):
        if (remark := remark_on(gpu)) is not None:
            is_held = memory_in_use(gpu) > HELD and number == 0
            yield Finding("fault" if is_held else "warning", "", remark)
    if gpus:
        yield from _torch_findings(gpus[0])


def _torch_findings(gpu: Gpu) -> Iterator[Finding]:
    """Yield what keeps PyTorch from a GPU; the version of a driver that serves it is not read."""
    if not torch.cuda.is_available():
        yield Finding("fault", "", why_unusable(gpu))
    elif (lacking := compiler_fault()) is not None:
        yield Finding(
            "warning", "", f"{lacking}; until then layers run uncompiled, which is slower"
        )


def check_gpu_memory(subjects: Iterable[Subject]) -> Check:
    """Check what each stage's model needs, against the GPU of this machine if there is one.

    One checkpoint stands for all of a stage; `check_checkpoints` reports those that cannot be read.

    Args:
        subjects: Checkpoints that are still to be scored.

    Returns:
        The check, whose summary has the memory that each stage needs.
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
    except ScoringError:  # which check_gpu reports
        return None
    return gpus[0] if gpus and gpus[0].total is not None else None


def _one_of_each(subjects: Iterable[Subject]) -> list[Subject]:
    """One checkpoint of each stage's steps, and its bridge, that this project's engine scores."""
    found: dict[tuple[str, str], Subject] = {}
    for subject in subjects:
        if subject.plan.config.scoring.device != "cpu" and not subject.plan.stage.command:
            found.setdefault((subject.plan.name, subject.role), subject)
    return list(found.values())


def _longest_pass(plan: StagePlan) -> int:
    """Return the tokens of a pass: a row is as long as the longest sequence in it."""
    return max(plan.config.scoring.row_tokens, plan.sequence_length)


def _total(gpu: Gpu) -> int:
    """Bytes; NVML's are kept as MiB."""
    return (gpu.total or 0) << 20


def _shortage(subject: Subject, gpu: Gpu, needs: Footprint, dtype: str) -> Finding | None:
    """Where the memory of a GPU is not enough, or not enough of it is free."""
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


def check_compile_cache(cache: Path) -> Check:
    """Check folders for compiled kernels, the shared one and this node's.

    Args:
        cache: The configuration's shared folder.

    Returns:
        The check; without a shared folder jobs are slower, which is a warning.
    """
    folder, findings = Path(cache) / compile_cache.FOLDER, []
    if (reason := _cannot_keep(folder)) is not None:
        sentence = (
            f"{folder}: compiled kernels cannot be kept there ({reason}), so every job on a GPU "
            "compiles anew for about a minute; make it writable, or free some disk space"
        )
        findings.append(Finding("warning", "", sentence))
    if _first_gpu() is not None and compile_cache.use_node_folder() is None:
        sentence = (
            "no folder of this node can be compiled in; free some disk space in the temporary "
            "folder, or set TMPDIR to another on this node"
        )
        findings.append(Finding("fault", "", sentence))
    return Check("compile cache", str(folder), tuple(findings))


def _cannot_keep(folder: Path) -> str | None:
    """Why nothing can be written to a folder, which is not made; None if it can."""
    if (problem := write_problem(folder)) is not None:
        return problem
    there = os.statvfs(nearest(folder))
    left = there.f_bavail * there.f_frsize
    return f"only {left >> 20} MB left" if left < compile_cache.LEAST_FREE else None
