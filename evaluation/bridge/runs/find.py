"""Find the scored checkpoints of a run: of this run, or of one that a path names. A run is named by one of:

    config.yaml                  the stages and steps that it requests, if they are scored
    <results>/                   every folder in it that holds by_checkpoint/, with the steps in its tables
    <results>/<stage>/           that stage alone

Only results are read: neither checkpoints nor caches need to be on this machine.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from evaluation.checkpoints.subjects import steps_so_far
from evaluation.errors import ResultsError
from evaluation.results.table import SUMMARY, read_rows
from evaluation.results.tier_files import read_tier_file, tiers_in
from evaluation.settings.config import load_config
from evaluation.settings.plan import StagePlan
from evaluation.settings.requested_steps import is_requested
from evaluation.settings.runs import THIS_RUN
from evaluation.settings.steps import step_named, step_of_results

log = logging.getLogger(__name__)

CHECKPOINTS = "by_checkpoint"


@dataclass(frozen=True, kw_only=True)
class RunCheckpoint:
    """A scored checkpoint and its folder of results."""

    step: int | None
    folder: Path

    @cached_property
    def tokens(self) -> int | None:
        """Tokens seen in training, if known; read at first use, so a damaged file affects only its step."""
        return read_tier_file(self.folder, tiers_in(self.folder)[0]).consumed_tokens


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run's scored checkpoints by stage, in ascending steps."""

    name: str
    path: Path
    stages: Mapping[str, tuple[RunCheckpoint, ...]]


def find_run(name: str, path: Path) -> Run:
    """Return the run of a configuration or a folder of results; raise ConfigError or ResultsError."""
    if not path.exists():
        raise ResultsError(
            f"{path}: no such file or folder; name a run by the path of its "
            "configuration or results folder"
        )
    return _run(name, path, run_folders(path))


def this_run(plans: Mapping[str, StagePlan]) -> Run:
    """Return the run of a configuration whose stages are planned; raise ResultsError if nothing is scored."""
    folders = {
        name: [step for step in map(plan.step_folder, sorted(steps_so_far(plan))) if tiers_in(step)]
        for name, plan in plans.items()
    }
    return _run(THIS_RUN, Path(next(iter(plans.values())).config.results), folders)


def _run(name: str, path: Path, folders: Mapping[str, list[Path]]) -> Run:
    stages = {
        stage: tuple(
            RunCheckpoint(step=step_of_results(folder), folder=folder) for folder in of_stage
        )
        for stage, of_stage in folders.items()
        if of_stage
    }
    if not stages:
        raise ResultsError(
            f"{path}: nothing of this run is scored; name a configuration whose results exist, or "
            f"a folder of results with {CHECKPOINTS}/step_<STEP>/ in it"
        )
    return Run(name=name, path=path, stages=stages)


def run_folders(path: Path) -> dict[str, list[Path]]:
    """Return folders of scored checkpoints, in ascending steps, by stage."""
    if path.is_file():
        config = load_config(path)
        places = {n: Path(s.results or Path(config.results) / n) for n, s in config.stages.items()}
        return {
            name: [
                step
                for step in _steps_in(places[name])
                if is_requested(step_of_results(step), stage.steps)
            ]
            for name, stage in config.stages.items()
        }
    if (path / CHECKPOINTS).is_dir():
        return {path.resolve().name: _steps_of_run(path)}
    stages = sorted(inner.parent for inner in path.glob(f"*/{CHECKPOINTS}") if inner.is_dir())
    return {stage.name: _steps_of_run(stage) for stage in stages}


def _steps_of_run(stage: Path) -> list[Path]:
    """Return the scored steps that the stage's table has; all where there is no table.

    Others were left by an earlier configuration.
    """
    folders = _steps_in(stage)
    if not (stage / SUMMARY).exists():
        return folders
    steps = {row["step"] for row in read_rows(stage / SUMMARY) if row["role"] == "step"}
    others = [folder.name for folder in folders if step_of_results(folder) not in steps]
    if others:
        log.warning(
            "%s: results of %s are left out: the run's own tables do not have them; run it again if "
            "they are new", stage, ", ".join(others),
        )  # fmt: skip
    return [folder for folder in folders if step_of_results(folder) in steps]


def _steps_in(stage: Path) -> list[Path]:
    inner = stage / CHECKPOINTS  # a glob would skip unreadable folders
    folders = [path for path in inner.iterdir() if _is_step(path)] if inner.is_dir() else []
    return sorted(folders, key=step_of_results)


def _is_step(folder: Path) -> bool:
    name = folder.name
    is_one = name.startswith("step_") and step_named(name.removeprefix("step_")) is not None
    return is_one and bool(tiers_in(folder))
