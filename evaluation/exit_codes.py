"""Exit codes of our programs: reports errors in one sentence, handles signals and closed streams.

Imports only the standard library.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import resource
import select
import signal
import sys
from typing import TYPE_CHECKING, Any

from evaluation.allowance import is_out_of_memory
from evaluation.environment import missing_package
from evaluation.errors import EvaluationError
from evaluation.escaping import printable_lines, terminal_text
from evaluation.files import without_temporary
from evaluation.terminal_layout import as_shown, fitted, show, spell_signs, terminal_width
from evaluation.wording import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

AGAIN = 0.05
"""Seconds until a signal is raised again if a library has swallowed its exception."""

LEAST_MEMORY = 1500 << 20
"""Bytes of addresses that importing PyTorch, Arrow and scipy needs, with some to spare."""

OUTPUT = "standard output"
SHARED_MEMORY = "/dev/shm"


def exit_code(action: Callable[[], int], *, is_scoring: bool) -> int:
    """Run a function and return its exit code; report errors in a sentence on stderr.

    SIGTERM ends the process.

    Returns:
        The action's code; 1 for an error, 130 for Ctrl-C, 141 if the reader of the output has
        ended.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # set by __main__ during imports
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGALRM, _stop)
    sys.unraisablehook = _stop_again
    try:
        return _without_errors(action, is_scoring=is_scoring)
    except KeyboardInterrupt:
        print("interrupted; run the same command again to go on", file=sys.stderr)
        return 130
    except _Terminated:
        logging.shutdown()
        if sys.stdout is not None:
            sys.stdout.flush()
        # Everything is on disk, and a normal exit with torch can take longer than Slurm waits.
        os._exit(128 + signal.SIGTERM)


def prepare_streams() -> None:
    """Spell or escape what the terminal's encoding lacks, and open closed streams as /dev/null."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:  # otherwise output would go to the next opened file
            os.open(os.devnull, os.O_RDWR)
    spell_signs()


def _without_errors(action: Callable[[], int], *, is_scoring: bool) -> int:
    try:
        with _flushed_output():
            return action()
    except EvaluationError as error:
        return report(str(error))
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("", "evaluation"):
            raise
        return report(missing_package(package))
    except (ImportError, MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        return report(out_of_memory())
    except OSError as error:
        if error.errno == errno.EPIPE and (error.filename == OUTPUT or _nobody_reads()):
            _discard_output()
            return 128 + signal.SIGPIPE
        logging.debug("where it happened:", exc_info=True)
        return report(machine_fault(error, is_scoring=is_scoring))
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # of Rust, which no module exports
            raise
        logging.debug("where it happened:", exc_info=True)
        return report(panic(error))


@contextlib.contextmanager
def _flushed_output() -> Iterator[None]:
    """Flush standard output while an error of it can still be reported."""
    try:
        yield
    finally:
        try:
            if sys.stdout is not None:
                sys.stdout.flush()
        except OSError as error:
            _discard_output()
            error.filename = OUTPUT
            raise


def _discard_output() -> None:
    """Discard buffered output, so that Python does not try to write it again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def machine_fault(error: OSError, *, is_scoring: bool = False) -> str:
    """Return a sentence that states what the system refused, where, and what to do."""
    if error.errno == errno.ENOMEM:
        return out_of_memory()
    if error.errno is None:
        return f"{without_temporary(' '.join(str(error).split()))} (`python -m evaluation -v …` shows where)"
    # Of a file that is copied, the second name is where the copy should be.
    named = error.filename2 or error.filename
    where = (
        without_temporary(str(named)) if named else "a file or stream that the system does not name"
    )
    if error.errno == errno.ENOSPC and error.filename is None and _is_full(SHARED_MEMORY):
        where = f"{SHARED_MEMORY}, through which processes of one machine share memory"
        remedy = "remove what dead processes have left in it, or have it made larger,"
    elif error.errno in (errno.ENOSPC, errno.EDQUOT):
        remedy = "free some disk space there, or choose another folder in the configuration,"
    elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        remedy = "change its permissions, or choose another folder in the configuration,"
    else:
        remedy = "correct that"
    again = " (an item that is in the score store is not scored again)" * is_scoring
    reason = os.strerror(error.errno)  # a library's own text may have other details
    return f"{where}: {reason}; {remedy} and run the command again{again}"


def panic(error: BaseException) -> str:
    """Return a sentence for a panic of a library in Rust, such as tokenizers."""
    return (
        f"a library gave up on its input ({one_line(error)}); the line above names its file; most often a "
        "tokenizer.json is damaged or of another version: download the tokenizer again"
    )


def out_of_memory() -> str:
    """Return a sentence that memory ran out, with the shell's limit if there is one."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY:
        return (
            f"memory: this shell lets a process have {limit >> 20:,} MB (`ulimit -v`), and that is not "
            "enough; run `ulimit -v unlimited`, or ask whoever sets it, and run the command again"
        )
    return "memory: this machine has not enough of it left; free some, or take a machine with more"


def too_small_limit() -> str | None:
    """Return a sentence if the shell's limit is less than scoring's libraries take.

    In scipy's OpenBLAS, which asks for memory again and again when it is loaded, such a limit never ends.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    is_limited = limit != resource.RLIM_INFINITY
    return out_of_memory() if is_limited and limit < LEAST_MEMORY else None


def _is_full(folder: str) -> bool:
    """Return whether a folder's file system has no free space or no free inodes."""
    try:
        room = os.statvfs(folder)
    except OSError:
        return False
    return room.f_bavail == 0 or room.f_favail == 0


def _nobody_reads() -> bool:
    """Return whether standard output is a pipe whose reader has ended, such as `head`."""
    watched = select.poll()
    watched.register(1, 0)
    return any(event & select.POLLERR for _, event in watched.poll(0))


def report(sentence: str) -> int:
    """Print an error, what is wrong and what to do, on stderr; return exit code 1."""
    show(f"error: {terminal_text(sentence)}", sys.stderr)
    return 1


def start_logging(verbose: bool = False) -> None:
    """Log to stderr, with lines that fit the terminal; `verbose` adds details, but not of all libraries."""
    handler = logging.StreamHandler()
    handler.setFormatter(_LogFormatter("%(asctime)s %(levelname)s %(message)s", datefmt="%H:%M:%S"))
    logging.basicConfig(level=logging.DEBUG if verbose else logging.INFO, handlers=[handler])
    for noisy in ("httpx", "filelock", "fsspec", "urllib3"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


class _LogFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        text = as_shown(printable_lines(super().format(record)), sys.stderr)
        return fitted(text, terminal_width(sys.stderr))


class _Terminated(SystemExit):
    """Raised at SIGTERM; Slurm sends SIGKILL a few seconds later."""


def _stop(signum: int, frame: FrameType | None) -> None:
    raise _Terminated(128 + signal.SIGTERM)


def _stop_again(ignored: Any) -> None:
    """Raise the exception of SIGTERM again if a library, such as pydantic, has swallowed it."""
    if isinstance(ignored.exc_value, _Terminated):
        signal.setitimer(signal.ITIMER_REAL, AGAIN)
    else:
        sys.__unraisablehook__(ignored)
