"""Builds the command-line parser: each module of this folder adds its commands."""

import argparse
import os
import sys
from typing import Any, NoReturn

from evaluation.commands import (
    checkpoint,
    compare,
    doctor,
    export,
    init,
    prefill,
    score,
    show,
    stage_results,
    watch,
)
from evaluation.errors import did_you_mean
from evaluation.settings.withdrawn import Kind, instead
from evaluation.version import __version__

GROUPS = (
    init,
    prefill,
    doctor,
    score,
    watch,
    stage_results,
    show,
    compare,
    export,
    checkpoint,
)

INSTALLED = "staged-evaluation"
"""Name of the program that installing the package provides."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors name the nearest command, choice or option, or what replaces one that went."""

    def parse_known_args(self, *given: Any, **named: Any) -> Any:
        """Parse the command line, and refuse words that no option accepts."""
        words = list(given[0] if given and given[0] is not None else sys.argv[1:])
        self._typed = words[: words.index("--")] if "--" in words else words
        found, rest = super().parse_known_args(*given, **named)
        if rest:  # this parser may be a subcommand's: the error shows its usage
            self.error(f"unrecognized arguments: {' '.join(rest)}")
        return found, rest

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        choices = list(map(str, action.choices or ()))
        if choices and value not in choices:
            kind: Kind = "command" if isinstance(action.choices, dict) else "value"
            hint = f" {gone}" if (gone := instead(kind, value)) else did_you_mean(value, choices)
            text = f"invalid choice: {value!r}{hint}; there are {', '.join(choices)}"
            raise argparse.ArgumentError(action, text)

    def error(self, message: str) -> NoReturn:
        """End the process with usage and error on stderr, and a hint on the nearest option."""
        names = [name for action in self._actions for name in action.option_strings]
        for word in (word.partition("=")[0] for word in self._typed):
            if word.startswith("--") and not any(name.startswith(word) for name in names):
                gone = instead("option", word)
                message += (
                    f"; {word} {gone}" if gone else f"; no option {word}{did_you_mean(word, names)}"
                )
        super().error(message)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands, whose options have the command's function as `run`."""
    is_installed = os.path.basename(sys.argv[0]) == INSTALLED
    parser: argparse.ArgumentParser = Parser(
        prog=INSTALLED if is_installed else "python -m evaluation",
        description="Each step of the workflow, and a few tools, by hand.",
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="log more")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(metavar="COMMAND", required=True, dest="command")
    for group in GROUPS:
        group.add_commands(commands)
    return parser


def parsers_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the parser of each command by its name."""
    choices = (action.choices for action in parser._actions if isinstance(action.choices, dict))
    return next(choices, {})
