"""The parser of the command line, put together from what each module of commands adds."""

import argparse

from evaluation.commands import (
    answers,
    checkpoint,
    compare,
    prefill,
    score,
    stage_results,
    watch,
)

GROUPS = (prefill, score, watch, stage_results, compare, answers, checkpoint)


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m evaluation",
        description="Each step of the workflow, and a few tools, by hand.",
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="log more")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, dest="command")
    for group in GROUPS:
        group.add_commands(commands)
    return parser
