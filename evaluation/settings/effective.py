"""The configuration as Snakemake merged it, written where its jobs can read it."""

from pathlib import Path

import yaml

from evaluation.files import fingerprint, write_text
from evaluation.settings.config import Config

CONFIG_VARIABLE = "EVALUATION_CONFIG"
"""Names this file to the workflow's jobs and to the command line."""


def write_effective(config: Config) -> Path:
    """Writes `<results>/.config/<fingerprint>.yaml` unless it is there; returns its path.

    Named by its content, so that two runs with different settings never share one.
    """
    content = config.model_dump(mode="json", exclude_defaults=True)
    path = Path(config.results) / ".config" / f"{fingerprint(content)}.yaml"
    if not path.exists():
        write_text(path, yaml.safe_dump(content, sort_keys=False, allow_unicode=True))
    return path
