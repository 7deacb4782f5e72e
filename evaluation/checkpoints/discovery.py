"""Which steps of a stage are on disk."""

import re
from pathlib import Path

from evaluation.errors import CheckpointError
from evaluation.settings.config import Every, Steps
from evaluation.settings.steps import step_named


def find_steps(folder: Path, steps: Steps) -> tuple[int, ...]:
    """The steps asked for: a list as it is given, `all` and `every: N` in ascending order.

    A step counts as being there once its configuration is, which trainers write after the weights.
    Raises CheckpointError if `all` or `every: N` finds none, or one whose number is none of a step.
    """
    if isinstance(steps, tuple):
        return steps
    if not folder.is_dir():
        raise CheckpointError(f"{folder}: no such folder to find steps in; list `steps` instead")
    every = steps.every if isinstance(steps, Every) else 1
    there = [_step(path) for path in folder.iterdir() if _is_checkpoint(path)]
    found = tuple(sorted(step for step in there if step % every == 0))
    if not found:
        wanted = "step" if every == 1 else f"step that is a multiple of {every}"
        raise CheckpointError(f"{folder}: holds no {wanted}; check `checkpoints` and `steps`")
    return found


def _step(path: Path) -> int:
    step = step_named(path.name)
    if step is None:
        raise CheckpointError(
            f"{path}: no step is larger than 2⁶³ - 1; rename this folder, or list `steps` instead"
        )
    return step


def _is_checkpoint(path: Path) -> bool:
    if not re.fullmatch(r"0|[1-9][0-9]*", path.name):
        return False
    nanotron = (path / "model").is_dir() and any(
        (path / config).is_file() for config in ("model_config.json", "config.yaml")
    )
    return nanotron or (path / "config.json").is_file()
