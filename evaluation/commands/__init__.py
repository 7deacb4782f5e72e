"""The command line: argument parsing, and nothing that computes."""

import argparse
import os
from collections.abc import Callable
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


def whole_number(at_least: int) -> Callable[[str], int]:
    """A type for argparse: whole numbers from `at_least` on."""

    def read(text: str) -> int:
        if not text.isdecimal() or not at_least <= int(text) < 2**63:
            raise argparse.ArgumentTypeError(
                f"{text!r} is no whole number from {at_least:,} to 2⁶³ - 1"
            )
        return int(text)

    return read
