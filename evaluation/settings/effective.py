"""The configuration as Snakemake merged it, written where its jobs can read it."""

from collections.abc import Sequence
from pathlib import Path

import yaml

from evaluation.files import fingerprint, write_text
from evaluation.settings.config import Config

CONFIG_VARIABLE = "EVALUATION_CONFIG"
"""Names this file to the workflow's jobs and to the command line."""

FOLDER = ".config"
FROM = "# from "
"""What the line begins with that tells where a configuration comes from."""


def write_effective(config: Config, origins: Sequence[str] = ()) -> Path:
    """Writes `<results>/.config/<fingerprint>.yaml` unless it is there as it should be; returns its path.

    Named by its content, so that two runs with different settings never share one. Its first line
    tells the `origins`: files, and their commits.
    """
    path, content = effective_path(config), _content(config)
    text = f"{FROM}{' + '.join(origins)}\n" if origins else ""
    text += yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
    if not path.exists() or (origins and path.read_text(encoding="utf-8") != text):
        write_text(path, text)
    return path


def effective_path(config: Config) -> Path:
    return Path(config.results) / FOLDER / f"{fingerprint(_content(config))}.yaml"


def origin_of(config: Config) -> str | None:
    """What `write_effective` was told of where a configuration comes from; None if it was not."""
    try:
        with open(effective_path(config), encoding="utf-8") as file:
            line = file.readline().strip()
    except OSError:
        return None
    return line.removeprefix(FROM) if line.startswith(FROM) else None


def _content(config: Config) -> dict[str, object]:
    return config.model_dump(mode="json", exclude_defaults=True)
