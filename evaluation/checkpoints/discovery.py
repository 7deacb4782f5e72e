"""Which steps of a stage are on disk."""

from pathlib import Path

from evaluation.errors import CheckpointError
from evaluation.settings.config import Every, Steps

CONFIGURATIONS = ("model_config.json", "config.yaml", "config.json")
"""Files that every writing of a checkpoint renews."""


def find_steps(folder: Path, steps: Steps) -> tuple[int, ...]:
    """The steps asked for: a list as it is given, `all` and `every: N` in ascending order.

    A step counts as being there once its configuration is, which trainers write after the weights.
    Raises CheckpointError if `all` or `every: N` finds none.
    """
    if isinstance(steps, tuple):
        return steps
    if not folder.is_dir():
        raise CheckpointError(f"{folder}: no such folder to find steps in; list `steps` instead")
    every = steps.every if isinstance(steps, Every) else 1
    names = (path.name for path in folder.iterdir() if _is_checkpoint(path))
    found = tuple(sorted(int(name) for name in names if int(name) % every == 0))
    if not found:
        wanted = "step" if every == 1 else f"step that is a multiple of {every}"
        raise CheckpointError(f"{folder}: holds no {wanted}; check `checkpoints` and `steps`")
    return found


def configuration_file(checkpoint: Path) -> Path | None:
    """A file that every writing of a checkpoint renews; None if there is no checkpoint."""
    found = (checkpoint / name for name in CONFIGURATIONS if (checkpoint / name).is_file())
    return next(found, None)


def _is_checkpoint(path: Path) -> bool:
    name = path.name
    if not (name.isascii() and name.isdigit()) or str(int(name)) != name:
        return False
    nanotron = (path / "model").is_dir() and any(
        (path / config).is_file() for config in ("model_config.json", "config.yaml")
    )
    return nanotron or (path / "config.json").is_file()
