"""The configuration as Snakemake merged it, written where its jobs can read it, from any folder.

A `command` in it may hold secrets, so only the user who started the run may read it. Others who
share the results have files of their own.
"""

import os
from pathlib import Path

import yaml

from evaluation.files import fingerprint
from evaluation.settings.config import WORKING_FOLDER, Config

FOLDER = ".config"


def effective_text(config: Config) -> str:
    return yaml.safe_dump(_content(config), sort_keys=False, allow_unicode=True)


def effective_path(config: Config) -> Path:
    """Return `<results>/.config/<user's number>/<fingerprint>.yaml`: no two contents share one."""
    folder = Path(config.results) / FOLDER / str(os.getuid())
    return folder / f"{fingerprint(_content(config))}.yaml"


def _content(config: Config) -> dict[str, object]:
    # With `folders` also where there are none, so that this file's own folder is not taken for one.
    content = config.model_dump(mode="json", exclude_defaults=True)
    return content | {"folders": list(config.folders), WORKING_FOLDER: os.getcwd()}
