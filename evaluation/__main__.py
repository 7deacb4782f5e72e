"""`python -m evaluation <command>`: each step of the workflow, and a few tools, by hand.

Exit codes: 0 done; 1 the input or the machine is at fault (one sentence on stderr); 2 wrong usage; 3 a
result cannot be made, its record states the reason, and the workflow continues without it; 130 Ctrl-C;
141 the reader of the output has ended; 143 SIGTERM. Commands import what they need when they run, so
that `--help` is quick; this file imports only the standard library.
"""

from __future__ import annotations

import signal

if __name__ == "__main__" and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    # Imports take a moment: until `exit_code` handles Ctrl-C, it ends the program without a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import os
import sys

from evaluation.environment import missing_environment
from evaluation.exit_codes import (
    exit_code,
    prepare_streams,
    report,
    start_logging,
    too_small_limit,
)


def main(arguments: list[str] | None = None) -> int:
    """Run one command of `python -m evaluation`."""
    prepare_streams()
    given = sys.argv[1:] if arguments is None else arguments
    is_scoring = "score" in given[:2]
    return exit_code(lambda: _run(given, is_scoring=is_scoring), is_scoring=is_scoring)


def _run(arguments: list[str], *, is_scoring: bool) -> int:
    fault = missing_environment() or _missing_folder()
    fault = fault or (too_small_limit() if is_scoring else None)
    if fault:
        return report(fault)
    from evaluation.command_hints import note_command
    from evaluation.commands.parser import build_parser

    options = build_parser().parse_args(arguments)
    start_logging(options.verbose)
    if "config" in options:
        note_command(options.config)
    code: int = options.run(options)
    return code


def _missing_folder() -> str | None:
    try:
        os.getcwd()
    except OSError:
        return "the current folder has been deleted; `cd` to one that exists"
    return None


if __name__ == "__main__":
    sys.exit(main())
