"""The command line: argument parsing, and nothing that computes."""

import argparse
import os
from collections.abc import Callable
from pathlib import Path

from evaluation.command_hints import CONFIG_VARIABLE, DEFAULT_CONFIG


def a_name(text: str) -> str:
    """A type for argparse: text that is not empty, as that of a variable that is not set would be."""
    if not text.strip():
        raise argparse.ArgumentTypeError(
            "is empty; give a name or path (is a variable of your shell not set?)"
        )
    return text


def a_path(text: str) -> Path:
    """The same of a path, as an empty one would be the current folder."""
    return Path(a_name(text))


def add_config(parser: argparse.ArgumentParser) -> None:
    default = os.environ.get(CONFIG_VARIABLE, DEFAULT_CONFIG)
    parser.add_argument(
        "--config",
        "--configfile",
        type=a_path,
        default=default,
        help="configuration file (%(default)s)",
    )


def add_stage(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    parser.add_argument("--stage", type=a_name, required=required, help="name of the stage")


def whole_number(at_least: int) -> Callable[[str], int]:
    """A type for argparse: whole numbers from `at_least` on."""

    def read(text: str) -> int:
        if not text.isdecimal() or not at_least <= int(text) < 2**63:
            raise argparse.ArgumentTypeError(
                f"{text!r} is no whole number from {at_least:,} to 2⁶³ - 1"
            )
        return int(text)

    return read
