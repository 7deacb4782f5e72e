"""This process and its children: exit codes and signals, cores and memory, programs of other Pythons.

Imports only the standard library, as programs in other environments import it too.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaluation.errors import EvaluationError, missing_package, printable_lines, report
from evaluation.version import ROOT

if TYPE_CHECKING:
    from types import FrameType

    from tqdm import tqdm

THREADS = "OMP_NUM_THREADS"
"""The variable with which a user or a parent sets the threads of libraries."""

_PHRASES = (
    "annot allocate memory", "DefaultCPUAllocator", "failed to map segment", "cannot map zero-fill",
)  # fmt: skip

_LIBC = ctypes.CDLL(None, use_errno=True)  # loaded before a fork, after which little is safe
_SET_PARENT_DEATH_SIGNAL = 1  # of prctl(2); kept when another program is executed


def end_with_parent(parent: int | None = None) -> None:
    """Make the kernel kill this process when the thread that started it ends; if `parent` has, exit now."""
    if _LIBC.prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl: the parent's death cannot be watched")
    if parent is not None and os.getppid() != parent:
        os._exit(1)


def end_group(process: subprocess.Popen[bytes]) -> None:
    """End a child that leads a session, and all its children in this session; wait for it."""
    with contextlib.suppress(ProcessLookupError):  # it has already ended
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def limit_memory(more: int) -> None:
    """Limit how many more bytes of memory this process may use than it does now."""
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + more
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))


_SHOWN, _KEPT = 300, 1 << 16
"""Characters of a program's last line that an error repeats, and bytes in which it is looked for."""


def exit_code(action: Callable[[], int]) -> int:
    """Return a function's exit code, 1 for an error, 130 for Ctrl-C; SIGTERM ends the process at once."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # set by __main__ during imports
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _stop)
    try:
        try:
            return action()
        finally:  # while an error of standard output can still be reported
            print(end="", flush=True)
    except EvaluationError as error:
        return report(str(error))
    except ModuleNotFoundError as error:
        if not error.name or error.name.startswith("evaluation"):
            raise
        return report(missing_package(error.name.partition(".")[0]))
    except BrokenPipeError:  # Python must not try to write the buffered output again at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 128 + signal.SIGPIPE
    except OSError as error:
        logging.debug("where it happened:", exc_info=True)
        return report(str(error))
    except KeyboardInterrupt:
        print("interrupted; run the same command again to go on", file=sys.stderr)
        return 130
    except _Terminated:
        logging.shutdown()
        print(end="", flush=True)
        # Everything is on disk, and a normal exit with torch can take longer than Slurm waits.
        os._exit(128 + signal.SIGTERM)


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


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error says that this machine's memory ran out; PyTorch has no class for that."""
    return isinstance(error, MemoryError) or any(words in str(error) for words in _PHRASES)


def usable_memory() -> int:
    """Return how many more bytes this process can take: free ones, or those left of its Slurm job."""
    lines = (line.split() for line in Path("/proc/meminfo").read_text().splitlines())
    free = next(int(line[1]) << 10 for line in lines if line[0] == "MemAvailable:")
    if megabytes := int(os.environ.get("SLURM_MEM_PER_NODE") or 0):
        resident = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
        free = min(free, (megabytes << 20) - resident)
    return max(0, free)


def usable_cores() -> int:
    """Return how many cores this process may keep busy."""
    return len(os.sched_getaffinity(0))


@dataclass(frozen=True)
class ProgramEnd:
    """How a program ended: its exit code (None if it was stopped), and its last line of output."""

    code: int | None
    last_line: str

    def __str__(self) -> str:
        how = "was stopped" if self.code is None else f"ended with code {self.code}"
        return f"{how}: {self.last_line}" if self.last_line else how


def is_python(path: Path) -> bool:
    """Return whether a path, such as another environment's Python, is an executable file; it is not run."""
    return os.access(path, os.X_OK) and not path.is_dir()


def run_python(
    python: Path,
    module: str,
    arguments: Sequence[str],
    folder: Path,
    variables: Mapping[str, str],
    seconds: float,
) -> ProgramEnd:
    """Run a module of this project in a folder by another Python; end it and its children after a time.

    The kernel kills it when the thread that started it ends. Raise OSError if it cannot be run.
    """
    with open(folder / "printed.log", "w+b") as printed:
        process = subprocess.Popen(
            [str(python), "-m", module, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.STDOUT,
            env={**environment(), **variables},
            cwd=folder,
            start_new_session=True,
            preexec_fn=partial(end_with_parent, os.getpid()),
        )
        code = None
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = process.wait(seconds)
        finally:
            end_group(process)
        printed.seek(max(0, printed.seek(0, os.SEEK_END) - _KEPT))
        lines = printed.read().decode(errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return ProgramEnd(code, last[:_SHOWN])


def environment() -> dict[str, str]:
    """Return our environment variables for another Python: `PYTHONPATH` has only this project."""
    given = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV"))}
    return given | {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0"}


def progress(what: str | None, total: int, unit: str, *, delay: float = 0.0) -> tqdm[Any]:
    """Return a progress bar on stderr, shown after `delay` seconds; None as its text: no bar."""
    from tqdm import tqdm

    interval = 0.5 if sys.stderr.isatty() else 10.0
    return tqdm(
        *(None, what, total),
        unit=unit,
        unit_scale=True,
        mininterval=interval,
        delay=delay,
        disable=what is None,
    )
