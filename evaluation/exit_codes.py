"""Exit codes of our programs: reports errors in one sentence, handles signals and a reader that has ended.

Imports only the standard library.
"""

from __future__ import annotations

import io
import logging
import os
import select
import signal
import sys
from typing import TYPE_CHECKING

from evaluation.environment import missing_package
from evaluation.errors import EvaluationError
from evaluation.escaping import printable_lines

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType


def exit_code(action: Callable[[], int]) -> int:
    """Run a function and return its exit code; report errors in a sentence on stderr.

    SIGTERM ends the process.

    Returns:
        The action's code; 1 for an error, 130 for Ctrl-C, 141 if the reader of the output has
        ended.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # set by __main__ during imports
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _stop)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="replace")
    try:
        return _without_errors(action)
    except KeyboardInterrupt:
        print("interrupted; run the same command again to go on", file=sys.stderr)
        return 130
    except _Terminated:
        logging.shutdown()
        print(end="", flush=True)
        # Everything is on disk, and a normal exit with torch can take longer than Slurm waits.
        os._exit(128 + signal.SIGTERM)


def _without_errors(action: Callable[[], int]) -> int:
    try:
        try:
            return action()
        finally:  # while an error of standard output can still be reported
            print(end="", flush=True)
    except EvaluationError as error:
        return report(str(error))
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("", "evaluation"):
            raise
        return report(missing_package(package))
    except OSError as error:
        if isinstance(error, BrokenPipeError) and _nobody_reads():
            # Python must not try to write the buffered output again at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            return 128 + signal.SIGPIPE
        logging.debug("where it happened:", exc_info=True)
        return report(str(error))


def _nobody_reads() -> bool:
    """Return whether standard output is a pipe whose reader has ended, such as `head`."""
    watched = select.poll()
    watched.register(1, 0)
    return any(event & select.POLLERR for _, event in watched.poll(0))


def report(sentence: str) -> int:
    """Print an error, what is wrong and what to do, on stderr; return exit code 1."""
    print(f"error: {printable_lines(sentence)}", file=sys.stderr)
    return 1


def start_logging(verbose: bool = False) -> None:
    """Log to stderr; `verbose` adds details, but not of all libraries."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Printable("%(asctime)s %(levelname)s %(message)s", datefmt="%H:%M:%S"))
    logging.basicConfig(level=logging.DEBUG if verbose else logging.INFO, handlers=[handler])
    for noisy in ("httpx", "filelock", "fsspec", "urllib3"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


class _Printable(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return printable_lines(super().format(record))


class _Terminated(SystemExit):
    """Raised at SIGTERM; Slurm sends SIGKILL a few seconds later."""


def _stop(signum: int, frame: FrameType | None) -> None:
    raise _Terminated(128 + signal.SIGTERM)
