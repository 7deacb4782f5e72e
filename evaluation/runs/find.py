"""Find the scored checkpoints of a run: of this run, or of one that a path names."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from evaluation.checkpoints.subjects import steps_so_far
from evaluation.errors import ResultsError
from evaluation.results.tier_files import read_tier_file, tiers_in
from evaluation.runs.folders import CHECKPOINTS, is_scored, run_folders
from evaluation.settings.plan import StagePlan
from evaluation.settings.runs import THIS_RUN
from evaluation.settings.steps import step_of_results

CONFIGURATIONS = (".yaml", ".yml")


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


def is_run(path: Path) -> bool:
    """Return whether a path is a configuration, or a folder of results above those of checkpoints."""
    if path.is_file():
        return path.suffix in CONFIGURATIONS
    return path.is_dir() and not is_scored(path) and bool(run_folders(path))


def find_run(name: str, path: Path) -> Run:
    """Return the run, with its scored checkpoints, of a configuration or a folder of results."""
    if not path.exists():
        raise ResultsError(
            f"{path}: no such file or folder; name a run by the path of its "
            "configuration or results folder"
        )
    return _run(name, path, run_folders(path))


def this_run(plans: Mapping[str, StagePlan]) -> Run:
    """Return the run of a configuration whose stages are planned; raise ResultsError if nothing is scored."""
    folders = {
        name: [
            step for step in map(plan.step_folder, sorted(steps_so_far(plan))) if is_scored(step)
        ]
        for name, plan in plans.items()
    }
    return _run(THIS_RUN, Path(next(iter(plans.values())).config.results), folders)


def labels(ours: Path, theirs: Path) -> tuple[str, str]:
    """Return names for two unnamed runs: the last two parts of their paths, or else the whole paths."""
    short = "/".join(ours.parts[-2:]), "/".join(theirs.parts[-2:])
    return short if short[0] != short[1] else (str(ours), str(theirs))


def _run(name: str, path: Path, folders: Mapping[str, list[Path]]) -> Run:
    stages = {
        stage: tuple(
            RunCheckpoint(step=step_of_results(subject), folder=subject) for subject in folders
        )
        for stage, folders in folders.items()
        if folders
    }
    if not stages:
        raise ResultsError(
            f"{path}: nothing of this run is scored; name a configuration whose results exist, or "
            f"a folder of results with {CHECKPOINTS}/step_<STEP>/ in it"
        )
    return Run(name=name, path=path, stages=stages)
