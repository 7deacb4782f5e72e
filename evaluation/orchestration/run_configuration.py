"""The configuration of a run, with the steps that were known when it started.

`all` and `every: N` may mean more steps a minute later. The jobs of a run must not see those: a
job would otherwise have other steps, or another bridge, than it was submitted for.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evaluation.commits import commit_of
from evaluation.dependencies.gone import with_known_steps
from evaluation.settings.config import Config, load_config, validate_config
from evaluation.settings.effective import CONFIG_VARIABLE, FOLDER, write_effective
from evaluation.settings.yaml_files import read_yaml


def run_config(
    content: dict[str, Any], is_main: bool, files: Sequence[str | Path] = ()
) -> tuple[Config, Path]:
    """The configuration and its file: written by a run's main process, read by its jobs.

    `content` is the configuration as Snakemake merged it from `files` and the command line.
    Raises ConfigError, also for what Snakemake lets pass in a file, such as a key given twice.
    """
    if not is_main and CONFIG_VARIABLE in os.environ:
        path = Path(os.environ[CONFIG_VARIABLE])
        return load_config(path), path
    for file in files:
        if Path(file).suffix in (".yaml", ".yml"):
            read_yaml(Path(file))
    config = validate_config(content, " + ".join(map(str, files)) or "configuration")
    config = with_known_steps(config)
    path = write_effective(config, _origins(files)).absolute()
    os.environ[CONFIG_VARIABLE] = str(path)
    return config, path


def _origins(files: Sequence[str | Path]) -> list[str]:
    """Each file by its name, with its commit where it has one; not what an earlier run wrote."""
    given = [Path(file) for file in files if Path(file).parent.name != FOLDER]
    known = [(file.name, commit_of(file)) for file in given]
    return [f"{name} at {commit}" if commit else name for name, commit in known]
