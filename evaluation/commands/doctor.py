"""`doctor`: whether everything is there that scoring needs, before a GPU is asked for."""

import argparse
import json
import os

from evaluation.commands import Commands, add_configured
from evaluation.commands.score import OFFLINE
from evaluation.errors import EvaluationError


def add_commands(commands: "Commands[argparse.ArgumentParser]") -> None:
    command = add_configured(
        commands, doctor, "what would stop a scoring job, and how to correct it", stage=False
    )
    command.add_argument("--json", action="store_true", help="as JSON, with every finding")
    command.add_argument(
        "--gate",
        action="store_true",
        help="as the workflow's first rule: what stops only some of the jobs is a warning",
    )


def doctor(options: argparse.Namespace) -> int:
    os.environ.update(OFFLINE)
    from evaluation.doctor.examine import examine
    from evaluation.doctor.findings import as_json, screen

    checks = examine(options.config, options.stage, gate=options.gate)
    print(json.dumps(as_json(checks), indent=1) if options.json else screen(checks), flush=True)
    faulty = [check.name for check in checks if check.state == "fault"]
    if faulty and options.gate:
        stage = f" of {options.stage}" if options.stage else ""
        raise EvaluationError(
            f"faults in {', '.join(faulty)}; correct them first: no job{stage} was submitted"
        )
    return int(bool(faulty))
