"""`python -m evaluation <command>`: each step of the workflow, and a few tools, by hand.

Exit codes: 0 done, 1 the input or the machine is at fault (one sentence on stderr), 2 usage,
143 ended by SIGTERM. Commands import what they need when they run, so that `--help` is quick.
"""

import argparse
import logging
import os
import signal
import sys
from collections.abc import Callable
from types import FrameType

from evaluation.commands import checkpoint, deltas, doctor, prefill, score
from evaluation.errors import EvaluationError

GROUPS: tuple[Callable[["argparse._SubParsersAction[argparse.ArgumentParser]"], None], ...] = (
    prefill.add_commands,
    doctor.add_commands,
    score.add_commands,
    deltas.add_commands,
    checkpoint.add_commands,
)


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m evaluation", description=__doc__.split("\n")[0]
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="log more")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for add in GROUPS:
        add(commands)
    return parser


class _Terminated(SystemExit):
    """SIGTERM: Slurm sends SIGKILL a few seconds later."""


def _stop(signum: int, frame: FrameType | None) -> None:
    raise _Terminated(128 + signum)


def main(arguments: list[str] | None = None) -> int:
    """Runs one command; returns its exit code."""
    options = build_parser().parse_args(arguments)
    logging.basicConfig(
        level=logging.DEBUG if options.verbose else logging.INFO,
        format="%(asctime)s %(levelname)s %(message)s",
        datefmt="%H:%M:%S",
    )
    for noisy in ("httpx", "filelock", "fsspec", "urllib3"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    signal.signal(signal.SIGTERM, _stop)
    try:
        code: int = options.run(options)
    except EvaluationError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        if error.errno is None:  # not the machine's doing
            raise
        logging.debug("where it happened:", exc_info=True)
        where = f"{error.filename}: " if error.filename else ""
        print(
            f"error: {where}{error.strerror}; mend that (room, permissions, or another folder in "
            "the configuration) and run again: what was already scored is kept",
            file=sys.stderr,
        )
        return 1
    except KeyboardInterrupt:
        print("interrupted; run the same command again to go on", file=sys.stderr)
        return 130
    except _Terminated as end:
        logging.shutdown()
        sys.stdout.flush()
        # All is on disk, and to take torch apart can last longer than Slurm waits.
        os._exit(int(str(end)))
    return code


if __name__ == "__main__":
    sys.exit(main())
