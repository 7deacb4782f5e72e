"""The configuration as Snakemake merged it, written where its jobs can read it, from any folder.

A `command` in it may hold secrets, so only the user who started the run may read it. Others who
share the results have files of their own.
"""

import os
import stat
from collections.abc import Sequence
from pathlib import Path

import yaml

from evaluation.files import atomic_path, fingerprint
from evaluation.settings.config import WORKING_FOLDER, Config

FOLDER = ".config"
PRIVATE = stat.S_IRUSR | stat.S_IWUSR
FROM = "# from "
"""Begins the line that names where a configuration comes from."""


def write_effective(config: Config, origins: Sequence[str] = ()) -> Path:
    """Write the file at `effective_path` unless it is up to date; return its path.

    Args:
        origins: Files that it comes from, and their commits; the first line names them. Without
            any, a private file that exists stays.
    """
    path, content = effective_path(config), _content(config)
    text = f"{FROM}{' + '.join(origins)}\n" if origins else ""
    text += yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
    if not _is_private(path) or (origins and path.read_text(encoding="utf-8") != text):
        path.parent.mkdir(mode=stat.S_IRWXU, parents=True, exist_ok=True)
        path.unlink(missing_ok=True)  # where it stays, so does its mode
        with atomic_path(path) as temporary:
            temporary.touch(mode=PRIVATE)
            temporary.write_text(text, encoding="utf-8")
    return path


def effective_path(config: Config) -> Path:
    """Return `<results>/.config/<user's number>/<fingerprint>.yaml`.

    It is named by its content, so that two runs with different settings never share one.
    """
    folder = Path(config.results) / FOLDER / str(os.getuid())
    return folder / f"{fingerprint(_content(config))}.yaml"


def _is_private(path: Path) -> bool:
    """Return whether the file is there, and readable by its owner alone."""
    try:
        return stat.S_IMODE(path.lstat().st_mode) == PRIVATE
    except FileNotFoundError:
        return False


def origin_of(config: Config) -> str | None:
    """Return the origins that `write_effective` noted, joined by ` + `; None if there is no note."""
    try:
        with open(effective_path(config), "rb") as file:
            line = file.readline().decode().strip()
    except OSError:
        return None
    return line.removeprefix(FROM) if line.startswith(FROM) else None


def _content(config: Config) -> dict[str, object]:
    # With `folders` also where there are none, so that this file's own folder is not taken for one.
    content = config.model_dump(mode="json", exclude_defaults=True)
    return content | {"folders": list(config.folders), WORKING_FOLDER: os.getcwd()}
