"""`compare`: two checkpoints or runs, paired. `table`: several checkpoints, a column each."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from evaluation.commands import (
    Commands,
    a_name,
    a_path,
    add_command,
    add_json,
    print_json,
)
from evaluation.errors import BridgeError, ConfigError, ResultsError
from evaluation.files import write_text
from evaluation.settings.runs import By


def add_commands(commands: "Commands[argparse.ArgumentParser]") -> None:
    """Add `compare` and `table`."""
    _add_compare(commands)
    _add_table(commands)


def _add_compare(commands: "Commands[argparse.ArgumentParser]") -> None:
    command = add_command(
        commands,
        _compare,
        "compare two checkpoints' results, or two runs, of one suite",
        epilog="Two runs are compared at every checkpoint that both have scored. Exit code 0: compared "
        "(with --fail-on-regression: and nothing is significantly worse). 1: the two cannot be "
        "compared (one line on stderr has the reason), or (with --fail-on-regression) A is significantly "
        "worse. 2: wrong usage.",
    )
    command.add_argument(
        "ours",
        type=a_path,
        metavar="A",
        help="a checkpoint's folder of results; or a run: its configuration, its results, or those "
        "of one stage",
    )
    command.add_argument("theirs", type=a_path, metavar="B", help="what A is compared with")
    command.add_argument(
        "--fail-on-regression",
        action="store_true",
        help="exit code 1 if A is significantly worse anywhere; of runs, at the last checkpoints",
    )
    command.add_argument(
        "--output",
        type=a_path,
        metavar="DIR",
        help="also write comparison.csv there, in the form of a stage's table",
    )
    add_json(command)
    about = "match checkpoints of two runs by steps (default) or training tokens"
    command.add_argument("--by", choices=get_args(By), help=about)


def _add_table(commands: "Commands[argparse.ArgumentParser]") -> None:
    command = add_command(
        commands, _table, "show checkpoints side by side, a column each, as text, CSV or LaTeX"
    )
    command.add_argument(
        "folders",
        type=a_name,
        nargs="+",
        metavar="LABEL=FOLDER",
        help="a column: its heading, and a checkpoint's folder of results",
    )
    command.add_argument("--format", choices=("text", "csv", "latex"), default="text")
    add_json(command)
    command.add_argument("--output", type=a_path, help="file to write (default: standard output)")


def _compare(options: argparse.Namespace) -> int:
    """Compare two checkpoints or runs; with `--fail-on-regression`, return 1 for a regression."""
    from evaluation.bridge.runs.compare import (
        COMPARISON,
        compare_checkpoints,
        compare_runs,
        write_comparison,
    )
    from evaluation.bridge.runs.find import find_run
    from evaluation.reporting.comparison import as_json, as_text, is_worse_at_last
    from evaluation.results.tier_files import tiers_in

    paths, notes = (options.ours, options.theirs), list[str]()
    if not any(map(tiers_in, paths)):
        ours, theirs = (find_run(str(path), path) for path in paths)
        stages, notes = compare_runs(ours, theirs, options.by or "steps")
    elif options.by is not None:
        raise ConfigError(
            f"--by is for two runs; {paths[0]} and {paths[1]} are read as results of two checkpoints"
        )
    else:
        stages = [compare_checkpoints(*paths)]
    if options.output is not None:
        write_comparison(options.output / COMPARISON, stages)
    if options.json:
        print_json(as_json(stages, notes))
    else:
        print(f"A = {paths[0]}\nB = {paths[1]}\n\n{as_text(stages, notes)}")
    is_worse = is_worse_at_last(stages)
    if is_worse is None and options.fail_on_regression:
        raise BridgeError(
            f"{paths[0]}: nothing could be tested against {paths[1]}, so a regression "
            "cannot be ruled out; score both sides with per-item tables"
        )
    return int(bool(is_worse) and options.fail_on_regression)


def _table(options: argparse.Namespace) -> int:
    """Write checkpoints' results side by side."""
    from evaluation.reporting.tables.side_by_side import LEGEND, as_csv, as_text, side_by_side

    folders = _labelled(options.folders)
    rows, notes = side_by_side(folders)
    if options.json:
        text = json.dumps({"rows": rows, "notes": notes}, indent=1) + "\n"
    elif options.format == "csv":
        text = as_csv(rows)
    else:
        text = as_text(rows, [*folders], latex=options.format == "latex")
    if options.output is None:
        sys.stdout.write(text)
    else:
        write_text(options.output, text)
    for note in notes:
        print(note, file=sys.stderr)
    if options.format == "text" and not options.json:
        print(LEGEND, file=sys.stderr)
    return 0


def _labelled(given: Sequence[str]) -> dict[str, Path]:
    """Return folders by label; the label of a folder without one is its name."""
    paths: dict[str, Path] = {}
    for argument in given:
        label, is_labelled, folder = argument.partition("=")
        path = Path(folder if is_labelled else argument)
        name = label if is_labelled else path.name
        if not (folder or not is_labelled):
            raise ResultsError(f"{argument}: no folder after the label; give LABEL=FOLDER")
        if name in paths:
            raise ResultsError(f"{argument}: two columns are called {name!r}; give LABEL=FOLDER")
        paths[name] = path
    return paths
