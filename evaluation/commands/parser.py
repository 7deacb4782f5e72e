"""The parser of the command line, put together from what each module of commands adds."""

import argparse
from collections.abc import Callable

from evaluation.commands import answers, checkpoint, compare, deltas, doctor, prefill, score, watch

GROUPS: tuple[Callable[["argparse._SubParsersAction[argparse.ArgumentParser]"], None], ...] = (
    prefill.add_commands,
    doctor.add_commands,
    score.add_commands,
    watch.add_commands,
    deltas.add_commands,
    compare.add_commands,
    answers.add_commands,
    checkpoint.add_commands,
)


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m evaluation",
        description="Each step of the workflow, and a few tools, by hand.",
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="log more")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, dest="command")
    for add in GROUPS:
        add(commands)
    return parser
