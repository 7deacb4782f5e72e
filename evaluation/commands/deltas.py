"""What is computed from stored scores, without model or GPU: deltas, tables, report, status."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from evaluation.checkpoints.subjects import steps_so_far
from evaluation.commands import add_config, add_stage, whole_number
from evaluation.commands.prefill import Commands
from evaluation.errors import BridgeError, ConfigError, ResultsError
from evaluation.files import write_text
from evaluation.records import RECORDED
from evaluation.settings.config import load_config
from evaluation.settings.plan import StagePlan, plan_stages


def add_commands(commands: "Commands[argparse.ArgumentParser]") -> None:
    command = commands.add_parser("deltas", help="one step's deltas against its bridge")
    add_config(command)
    add_stage(command)
    command.add_argument("--step", type=whole_number(0), required=True)
    command.set_defaults(run=deltas)

    command = commands.add_parser("tables", help="a stage's tables, recommendation and report")
    add_config(command)
    add_stage(command)
    command.set_defaults(run=tables)

    command = commands.add_parser("figures", help="a stage's curves and forest plots as SVG files")
    add_config(command)
    add_stage(command)
    command.set_defaults(run=figures)

    command = commands.add_parser("front-page", help="the report's first page, over all stages")
    add_config(command)
    command.set_defaults(run=front_page)

    command = commands.add_parser(
        "tensorboard",
        help="all curves as TensorBoard event files (needs `pip install tensorboard`)",
    )
    add_config(command)
    command.add_argument("--output", type=Path, required=True, metavar="DIR", help="the log folder")
    command.set_defaults(run=tensorboard)

    command = commands.add_parser("bridge-table", help="every stage's deltas and verdicts, as text")
    add_config(command)
    command.set_defaults(run=bridge_table)

    command = commands.add_parser("status", help="what is done and what is missing")
    add_config(command)
    add_stage(command, required=False)
    command.add_argument("--json", action="store_true", help="as JSON")
    command.set_defaults(run=status)

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


def _plans(options: argparse.Namespace) -> dict[str, StagePlan]:
    """All stages, with the steps that are known now."""
    from evaluation.dependencies.gone import with_known_steps

    return plan_stages(with_known_steps(load_config(options.config)))


def _plan(options: argparse.Namespace) -> StagePlan:
    plans = _plans(options)
    if options.stage not in plans:
        raise ConfigError(
            f"{options.config}: no stage {options.stage!r}; there are {', '.join(plans)}"
        )
    return plans[options.stage]


def deltas(options: argparse.Namespace) -> int:
    from evaluation.bridge.step import make_deltas

    plan = _plan(options)
    if plan.stage.bridge is None:
        raise ConfigError(
            f"stages.{plan.name}.bridge: none is configured, so there are no deltas; name a `stage` or a `path` there"
        )
    record = make_deltas(plan, options.step)
    if record.error is not None:
        print(f"error: {record.error}", file=sys.stderr)
        return RECORDED
    print(plan.step_folder(options.step))
    return 0


def tables(options: argparse.Namespace) -> int:
    from evaluation.reporting.steps import make_tables

    make_tables(_plan(options))
    return 0


def figures(options: argparse.Namespace) -> int:
    from evaluation.reporting.steps import make_figures

    plan = _plan(options)
    for name in make_figures(plan).files:
        print(plan.results / name)
    return 0


def front_page(options: argparse.Namespace) -> int:
    from evaluation.reporting.steps import make_front_page

    print(make_front_page(_plans(options)))
    return 0


def tensorboard(options: argparse.Namespace) -> int:
    from evaluation.reporting.tables.tensorboard import export_curves

    number = export_curves(list(_plans(options).values()), options.output)
    print(f"{number} values in {options.output}; look at them with `tensorboard --logdir`")
    return 0


def bridge_table(options: argparse.Namespace) -> int:
    from evaluation.reporting.terminal import bridge_table as table

    print(table(_plans(options)))
    return 0


def status(options: argparse.Namespace) -> int:
    from evaluation.reporting.status import stage_status, status_table

    plans = _plans(options) if options.stage is None else {options.stage: _plan(options)}
    found = {name: stage_status(plan, steps_so_far(plan)) for name, plan in plans.items()}
    print(json.dumps(found, indent=1) if options.json else status_table(found))
    return 0 if all(entry["complete"] for entry in found.values()) else 1


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
