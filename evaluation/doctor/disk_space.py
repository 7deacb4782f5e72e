"""Checks the disk space for results, and whether folders can be written to."""

import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from evaluation.checkpoints.subjects import Subject
from evaluation.doctor.caches import Caches
from evaluation.doctor.findings import Check, Finding
from evaluation.metrics.positions import bin_starts
from evaluation.settings.plan import StagePlan
from evaluation.settings.provided import settled_task

BLOCK_BYTES = 70
"""A block's row in the score store, in tier2_ppl_blocks.parquet and in the units together: 61 were measured."""
BIN_BYTES = 30
"""A block's values by position in these files, per bin."""
CANDIDATE_BYTES = 110
"""A candidate's row in the store, in tier3_cf_candidates.parquet and in the units together: 64 were measured."""
ANSWER_BYTES = 8_000
"""An answer of some hundred tokens in the store, the generations and the summary together."""
ITEM_BYTES = 12_000
"""Further bytes per slice or task: overhead of Parquet, its part of the JSON files and deltas.

Measured in the demo, with 25 items per checkpoint: 7,600.
"""
CHECKPOINT_BYTES = 60_000
"""Deltas, logs, and the headers of the JSON files."""
COMFORT = 2
"""Less free space than this multiple of the need is a warning: others write to the disk, too."""
CHECKPOINT_FILES = 20
"""Ten tier files, deltas, four logs, benchmark, two folders, with two to spare."""


@dataclass(frozen=True)
class Need:
    """Bytes and files that are still to be written."""

    bytes: int
    files: int


def estimate(subjects: Iterable[Subject], caches: Caches) -> Need:
    """Estimate the disk space that results need, rather too high than too low."""
    plans = [subject.plan for subject in subjects]
    each = {plan.name: plan for plan in plans}
    needs = {name: _of_one(plan, caches) for name, plan in each.items()}
    known = [needs[plan.name] for plan in plans]
    return Need(sum(need.bytes for need in known), sum(need.files for need in known))


def _of_one(plan: StagePlan, caches: Caches) -> Need:
    metas = caches.of(plan)
    block_bytes = BLOCK_BYTES + BIN_BYTES * len(bin_starts(plan.sequence_length))
    size = CHECKPOINT_BYTES + ITEM_BYTES * len(metas)
    for meta in metas:
        if "blocks" in meta:
            size += block_bytes * int(meta["blocks"])
        elif "candidates" in meta:
            size += CANDIDATE_BYTES * int(meta["candidates"])
        else:
            size += ANSWER_BYTES * int(meta["items"]["used"])
    for name, task in plan.suite.generation_tasks.items():
        known = caches.metas.get(plan.cache_folder("tier5", name))
        if known is not None:  # the first sample of each item is counted already
            drawn = settled_task(task, known).sampling.n
            size += ANSWER_BYTES * int(known["items"]["used"]) * (drawn - 1)
    return Need(size, CHECKPOINT_FILES + len(metas))


def check_disk_space(results: Path, need: Need) -> Check:
    """Check free bytes and inodes: below the need a fault, below COMFORT times it a warning; not quotas."""
    folder = nearest(results)
    there = os.statvfs(folder)
    free, inodes = there.f_bavail * there.f_frsize, there.f_favail
    summary = f"needs {_size(need.bytes)} and {need.files:,} files; {_size(free)} free"
    findings = []
    if free < need.bytes * COMFORT:
        left = f"only {_size(free)} are free, and the results need {_size(need.bytes)}"
        findings.append(_short(folder, left, free < need.bytes))
    if there.f_files and inodes < need.files * COMFORT:  # some file systems do not count inodes
        left = f"only {inodes:,} more files can be made, and the results need {need.files:,}"
        findings.append(_short(folder, left, inodes < need.files))
    return Check("disk space", summary, tuple(findings))


def _short(folder: Path, left: str, too_short: bool) -> Finding:
    sentence = f"{folder}: {left}; delete what is not needed, or set another `results`"
    return Finding("fault" if too_short else "warning", "", sentence)


def _size(count: int) -> str:
    for unit, factor in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if count >= factor:
            return f"{count / factor:,.1f} {unit}"
    return f"{count / 1e3:,.1f} kB"


def nearest(path: Path) -> Path:
    """Return a folder, or its nearest existing parent, which may be a file."""
    path = path.absolute()
    while not path.exists():
        path = path.parent
    return path


def check_folders(plans: Mapping[str, StagePlan]) -> Check:
    """Check that results can be written; an unwritable cache is a warning, as only prefill writes it."""
    config = next(iter(plans.values())).config
    results = dict.fromkeys([Path(config.results), *(plan.results for plan in plans.values())])
    findings = [
        Finding("fault", "", f"{problem}; {_remedy(folder)}, or set another `results`")
        for folder in results
        if (problem := write_problem(folder))
    ]
    if problem := write_problem(Path(config.cache)):
        sentence = f"{problem}; prefill needs that, scoring does not"
        findings.append(Finding("warning", "", sentence))
    return Check("folders", f"{config.results}, {config.cache}", tuple(dict.fromkeys(findings)))


def _remedy(folder: Path) -> str:
    return "correct its permissions" if nearest(folder).is_dir() else "move it away"


def write_problem(path: Path) -> str | None:
    """Return why a folder, which may be missing, cannot be written to; None if a file could be made."""
    folder = nearest(path)
    if not folder.is_dir():
        return f"{folder} is a file where a folder is needed"
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(4096))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return f"{folder} cannot be written to ({error.strerror})"
    return None
