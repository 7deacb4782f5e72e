"""Fixes the configuration of a run, with the steps that existed when it started.

`all` and `every: N` may match more steps a minute later. The jobs of a run must not see those: a
job would otherwise have other steps, or another bridge, than it was submitted for.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evaluation.dependencies.known_steps import with_known_steps
from evaluation.settings.config import Config, load_config, validate_config
from evaluation.settings.effective import FOLDER, effective_path, write_effective
from evaluation.settings.yaml_files import read_yaml
from evaluation.version import CONFIG_VARIABLE, commit_of


def run_config(
    content: dict[str, Any], is_main: bool, files: Sequence[str | Path]
) -> tuple[Config, Path]:
    """Return the configuration of a run and its file, which `keep_config` writes and jobs read.

    Args:
        content: The configuration as Snakemake merged it from `files` and the command line.
    """
    if not is_main and CONFIG_VARIABLE in os.environ:
        path = Path(os.environ[CONFIG_VARIABLE])
        return load_config(path), path
    for file in files:
        if Path(file).suffix in (".yaml", ".yml"):
            read_yaml(Path(file))
    origin = " + ".join(map(str, files)) or "configuration"
    config = with_known_steps(validate_config(content, origin, list(map(Path, files))))
    path = effective_path(config).absolute()
    if not is_main:  # a job that the variable did not reach
        keep_config(config, files)
    os.environ[CONFIG_VARIABLE] = str(path)
    return config, path


def keep_config(config: Config, files: Sequence[str | Path]) -> None:
    """Write the file that the jobs of a run read."""
    given = [Path(file) for file in files if not _is_effective(Path(file))]
    known = [(file.name, commit_of(file)) for file in given]
    origins = [f"{name} at {commit}" if commit else name for name, commit in known]
    write_effective(config, origins)


def _is_effective(path: Path) -> bool:
    """Return whether a run has written this file."""
    return path.parent.parent.name == FOLDER
