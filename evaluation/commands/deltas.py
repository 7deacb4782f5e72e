"""What is computed from stored scores, without model or GPU: deltas, tables, report, status."""

import argparse
import json
from pathlib import Path

from evaluation.checkpoints.subjects import stage_steps
from evaluation.commands import add_config, add_stage, whole_number
from evaluation.commands.prefill import Commands
from evaluation.errors import ConfigError
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

    command = commands.add_parser("compare", help="two result folders of one suite, paired")
    command.add_argument("ours", type=Path, metavar="A")
    command.add_argument("theirs", type=Path, metavar="B", help="what A is compared with")
    command.add_argument(
        "--fail-on-regression", action="store_true", help="exit code 1 if A is worse anywhere"
    )
    command.set_defaults(run=compare)


def _plans(options: argparse.Namespace) -> dict[str, StagePlan]:
    return plan_stages(load_config(options.config))


def _plan(options: argparse.Namespace) -> StagePlan:
    plans = _plans(options)
    if options.stage not in plans:
        raise ConfigError(
            f"{options.config}: no stage {options.stage!r}; there are {', '.join(plans)}"
        )
    return plans[options.stage]


def deltas(options: argparse.Namespace) -> int:
    from evaluation.bridge.write import write_deltas

    print(write_deltas(_plan(options), options.step))
    return 0


def tables(options: argparse.Namespace) -> int:
    from evaluation.bridge.write import write_stage
    from evaluation.reporting.pages.page import write_page
    from evaluation.reporting.pages.stage_page import stage_page
    from evaluation.reporting.tables.stage_results import read_stage
    from evaluation.reporting.tables.summary import write_tables

    plan = _plan(options)
    steps = stage_steps(plan)
    if plan.stage.bridge is not None:
        write_stage(plan, steps)
    found = read_stage(plan, steps)
    write_tables(found)
    write_page(plan.results / "report.html", stage_page(found))
    return 0


def figures(options: argparse.Namespace) -> int:
    from evaluation.reporting.tables.figures import write_figures

    for path in write_figures(_plan(options)):
        print(path)
    return 0


def front_page(options: argparse.Namespace) -> int:
    from evaluation.reporting.pages.front_page import write_front_page

    plans = _plans(options)
    output = Path(next(iter(plans.values())).config.results) / "report.html"
    write_front_page(plans, output)
    print(output)
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
    found = {name: stage_status(plan, stage_steps(plan)) for name, plan in plans.items()}
    print(json.dumps(found, indent=1) if options.json else status_table(found))
    return 0 if all(entry["complete"] for entry in found.values()) else 1


def compare(options: argparse.Namespace) -> int:
    from evaluation.reporting.compare import compare_folders

    text, is_worse = compare_folders(options.ours, options.theirs)
    print(text)
    return int(is_worse and options.fail_on_regression)
