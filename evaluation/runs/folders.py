"""Find the results of a run, and their state. A run is named by one of:

    config.yaml                  the stages and steps that it requests, if they are scored
    <results>/                   every folder in it that holds by_checkpoint/, with the steps in its tables
    <results>/<stage>/           that stage alone
    any folder of tier files     one checkpoint: not a run, but a reference level for curves

Only results are read: neither checkpoints nor caches need to be on this machine.
"""

import contextlib
import functools
import logging
from collections.abc import Iterator
from pathlib import Path

from evaluation.errors import ResultsError
from evaluation.results.table import SUMMARY, read_rows
from evaluation.settings.config import Config, load_config
from evaluation.settings.requested_steps import is_requested
from evaluation.settings.steps import step_named, step_of_results
from evaluation.settings.tiers import TIERS

log = logging.getLogger(__name__)

CHECKPOINTS = "by_checkpoint"


def run_folders(path: Path) -> dict[str, list[Path]]:
    """Return folders of scored checkpoints, in ascending steps, by stage.

    Raises:
        ConfigError: A file is not a configuration.
        ResultsError: Something cannot be read.
    """
    try:
        return _configured(path) if path.is_file() else _stages_in(path)
    except OSError as error:
        raise ResultsError(
            f"{error.filename or path}: cannot be read ({error.strerror}); give yourself access to it"
        ) from None


def is_scored(folder: Path) -> bool:
    """Return whether a folder holds the results of a checkpoint: a tier's summary file."""
    return any((folder / tier.summary_file).exists() for tier in TIERS.values())


def references(config: Config) -> dict[str, Path]:
    """Return folders of the runs that are results of one checkpoint, by name; none if unreadable."""
    named = {name: Path(run.path) for name, run in config.runs.items()}
    with contextlib.suppress(OSError):  # reported when it is read as a run
        return {name: path for name, path in named.items() if is_scored(path)}
    return {}


def _configured(path: Path) -> dict[str, list[Path]]:
    """Return folders of the steps that a configuration requests."""
    config = load_config(path)
    by_stage = {}
    for name, stage in config.stages.items():
        folder = Path(stage.results or Path(config.results) / name)
        by_stage[name] = [
            step for step in _steps_in(folder) if is_requested(step_of_results(step), stage.steps)
        ]
    return by_stage


def _stages_in(path: Path) -> dict[str, list[Path]]:
    """Return the steps of a stage's folder itself, or of all folders in a folder of results."""
    if (path / CHECKPOINTS).is_dir():
        return {path.resolve().name: _steps_of_run(path)}
    inner = sorted(path.parent for path in path.glob(f"*/{CHECKPOINTS}") if path.is_dir())
    return {folder.name: _steps_of_run(folder) for folder in inner}


def _steps_of_run(stage: Path) -> list[Path]:
    """Return the scored steps that the stage's table has; all where there is no table.

    Others were left by an earlier configuration.
    """
    folders = list(_steps_in(stage))
    if not (stage / SUMMARY).exists():
        return folders
    steps = {row["step"] for row in read_rows(stage / SUMMARY) if row["role"] == "step"}
    found = {step_of_results(folder): folder for folder in folders}
    others = tuple(str(step) for step in found if step not in steps)
    if others:
        _warn_of_others(stage, others)
    return [folder for step, folder in found.items() if step in steps]


@functools.cache
def _warn_of_others(stage: Path, steps: tuple[str, ...]) -> None:
    """Warn once, however often a run is looked at."""
    log.warning(
        "%s: results of step %s are left out: the run's own tables do not have them; run it again if "
        "they are new", stage, ", ".join(steps),
    )  # fmt: skip


def _steps_in(stage: Path) -> Iterator[Path]:
    if (stage / CHECKPOINTS).is_dir():  # a glob would skip unreadable folders
        folders = [path for path in (stage / CHECKPOINTS).iterdir() if _is_step(path)]
        yield from sorted(folders, key=step_of_results)


def _is_step(folder: Path) -> bool:
    name = folder.name
    is_one = name.startswith("step_") and step_named(name.removeprefix("step_")) is not None
    return is_one and is_scored(folder)
