"""Any folders of results beside one another: two of them paired, or a column for each."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from evaluation.commands.prefill import Commands
from evaluation.errors import BridgeError, ResultsError
from evaluation.files import write_text


def add_commands(commands: "Commands[argparse.ArgumentParser]") -> None:
    _add_compare(commands)
    _add_table(commands)


def _add_compare(commands: "Commands[argparse.ArgumentParser]") -> None:
    command = commands.add_parser(
        "compare",
        help="two result folders of one suite, paired",
        epilog="Exit code 0: compared (with --fail-on-regression: and nothing is significantly "
        "worse). 1: the two cannot be compared, as one line on stderr says, or "
        "(with --fail-on-regression) A is significantly worse. 2: wrong usage.",
    )
    command.add_argument("ours", type=Path, metavar="A")
    command.add_argument("theirs", type=Path, metavar="B", help="what A is compared with")
    command.add_argument(
        "--fail-on-regression",
        action="store_true",
        help="exit code 1 if A is significantly worse anywhere",
    )
    command.set_defaults(run=compare)


def _add_table(commands: "Commands[argparse.ArgumentParser]") -> None:
    command = commands.add_parser(
        "table", help="checkpoints side by side, a column each, as text, CSV or LaTeX"
    )
    command.add_argument(
        "folders",
        nargs="+",
        metavar="LABEL=FOLDER",
        help="a column: its heading, and a checkpoint's folder of results",
    )
    command.add_argument("--format", choices=("text", "csv", "latex"), default="text")
    command.add_argument("--output", type=Path, help="file to write; else standard output")
    command.set_defaults(run=table)


def compare(options: argparse.Namespace) -> int:
    from evaluation.reporting.compare import compare_folders

    text, is_worse = compare_folders(options.ours, options.theirs)
    print(text)
    if is_worse is None and options.fail_on_regression:
        raise BridgeError(
            f"{options.ours}: nothing could be tested against {options.theirs}, so a regression "
            "cannot be ruled out; score both sides with per-item tables"
        )
    return int(bool(is_worse) and options.fail_on_regression)


def table(options: argparse.Namespace) -> int:
    from evaluation.reporting.tables.checkpoints import table_of

    text, notes = table_of(_labelled(options.folders), options.format)
    if options.output is None:
        sys.stdout.write(text)
    else:
        write_text(options.output, text)
    for note in notes:
        print(note, file=sys.stderr)
    return 0


def _labelled(given: Sequence[str]) -> dict[str, Path]:
    """Folders by label; one without a label is called by its own name."""
    found: dict[str, Path] = {}
    for one in given:
        label, is_labelled, folder = one.partition("=")
        path = Path(folder if is_labelled else one)
        name = label if is_labelled else path.name
        if not (folder or not is_labelled):
            raise ResultsError(f"{one}: no folder after the label; give LABEL=FOLDER")
        if name in found:
            raise ResultsError(f"{one}: two columns are called {name!r}; give LABEL=FOLDER")
        found[name] = path
    return found
