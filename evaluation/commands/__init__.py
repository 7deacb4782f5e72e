"""The command line: argument parsing, and nothing that computes."""

import argparse
import os
from pathlib import Path

from evaluation.settings.effective import CONFIG_VARIABLE


def add_config(parser: argparse.ArgumentParser) -> None:
    default = Path(os.environ.get(CONFIG_VARIABLE, "config/config.yaml"))
    parser.add_argument(
        "--config",
        "--configfile",
        type=Path,
        default=default,
        help="configuration file (%(default)s)",
    )


def add_stage(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    parser.add_argument("--stage", required=required, help="name of the stage")
