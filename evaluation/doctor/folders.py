"""Checks that folders can be written to, and tells how much disk space is free."""

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from evaluation.doctor.findings import Check, Finding
from evaluation.settings.plan import StagePlan


def check_folders(plans: Mapping[str, StagePlan]) -> Check:
    """Check that results can be written; an unwritable cache is a warning, as only prefill writes it."""
    config = next(iter(plans.values())).config
    results = dict.fromkeys([Path(config.results), *(plan.results for plan in plans.values())])
    findings = [
        Finding("fault", "", f"{problem}; correct that, or set another `results`")
        for folder in results
        if (problem := _write_problem(folder))
    ]
    if problem := _write_problem(Path(config.cache)):
        sentence = f"{problem}; prefill needs that, scoring does not"
        findings.append(Finding("warning", "", sentence))
    free = shutil.disk_usage(_nearest(Path(config.results))).free / 1e9
    summary = f"{config.results}, {config.cache}; {free:,.1f} GB free in {config.results}"
    return Check("folders", summary, tuple(dict.fromkeys(findings)))


def _write_problem(path: Path) -> str | None:
    """Return why a folder, which may be missing, cannot be written to; None if a file could be made."""
    folder = _nearest(path)
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


def _nearest(path: Path) -> Path:
    """Return a folder, or its nearest existing parent, which may be a file."""
    path = path.absolute()
    while not path.exists():
        path = path.parent
    return path
