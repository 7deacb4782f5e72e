"""`python -m evaluation <command>`: each step of the workflow, and a few tools, by hand.

docs/command_line.md has the exit codes. Commands import what they need when they run, so that `--help` is
quick; this file imports only the standard library.
"""

from __future__ import annotations

import signal

if __name__ == "__main__" and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    # Imports take a moment: until `exit_code` handles Ctrl-C, it ends the program without a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import sys

from evaluation.processes import exit_code, start_logging


def main(arguments: list[str] | None = None) -> int:
    """Run one command of `python -m evaluation`."""
    return exit_code(lambda: _run(arguments))


def _run(arguments: list[str] | None) -> int:
    from evaluation.commands.parser import build_parser

    options = build_parser().parse_args(arguments)
    start_logging(options.verbose)
    return int(options.run(options))


if __name__ == "__main__":
    sys.exit(main())
