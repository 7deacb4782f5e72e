"""The copy of a configuration that the shell of each job writes."""

from pathlib import Path

from evaluation.files import write_text
from evaluation.settings.config import Config
from evaluation.settings.effective import effective_path, effective_text


def write_effective(config: Config) -> Path:
    path = effective_path(config)
    write_text(path, effective_text(config))
    return path
