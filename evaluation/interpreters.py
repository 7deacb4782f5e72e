"""Runs programs with the Python of another environment; data is exchanged through files.

The kernel kills a program when the thread that started it ends for any reason.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from evaluation.children import end_group, end_with_parent
from evaluation.root import ROOT

_POLL = 0.1
_SHOWN = 300
"""Characters of a program's last line that an error repeats."""
_KEPT = 1 << 16
"""Last bytes of a program's output that are kept."""
_LAST_WORDS_SECONDS = 2.0
"""Seconds to wait for the last output, as a surviving child of the program may hold the pipe."""


@dataclass(frozen=True)
class ProgramEnd:
    """How a program ended: its exit code (None if it was stopped), and its last line of output."""

    code: int | None
    last_line: str

    def __str__(self) -> str:
        how = "was stopped" if self.code is None else f"ended with code {self.code}"
        return f"{how}: {self.last_line}" if self.last_line else how


class NotStarted(Exception):
    """The other Python cannot be run; the message is the system's reason."""


def is_python(path: Path) -> bool:
    """Return whether a path, such as another environment's Python, is an executable file; it is not run."""
    return os.access(path, os.X_OK) and not path.is_dir()


@dataclass(frozen=True)
class PythonProgram:
    """A module of this project with its arguments, for another Python."""

    python: Path
    module: str
    arguments: Sequence[str]
    folder: Path
    """Folder in which it is started."""
    variables: Mapping[str, str]
    """Environment variables in addition to ours."""
    hear: Callable[[str], None] | None = None
    """Called with each line of its output, in another thread."""

    def run(self, keep_on: Callable[[], bool]) -> ProgramEnd:
        """Run the program until it ends or has taken too long.

        Args:
            keep_on: Called ten times a second; False stops the program.

        Raises:
            NotStarted: When its Python cannot be run.
        """
        with self.started() as running:
            while running.is_alive and keep_on():
                time.sleep(_POLL)
            return running.ended()

    @contextlib.contextmanager
    def started(self) -> Iterator[Running]:
        """Start the process; at the end of the block, end it and all its children."""
        process = self._start()
        try:
            yield Running(process, self.hear)
        finally:
            end_group(process)

    def _start(self) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                [str(self.python), "-m", self.module, *self.arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                bufsize=0,
                env={**environment(), **self.variables},
                cwd=self.folder,
                start_new_session=True,
                preexec_fn=partial(end_with_parent, os.getpid()),
            )
        except OSError as error:
            raise NotStarted(error.strerror) from None


def environment() -> dict[str, str]:
    """Return our environment variables for another Python: `PYTHONPATH` has only this project."""
    given = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV"))}
    return given | {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0"}


class Running:
    """A running program; its output is read continuously by `hear`, and the end of it is kept."""

    def __init__(
        self, process: subprocess.Popen[bytes], hear: Callable[[str], None] | None = None
    ) -> None:
        self.heard = time.monotonic()
        """Time of its last output."""
        self._process = process
        self._printed = b""
        self._hear = hear
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended yet."""
        return self._process.poll() is None

    def ended(self) -> ProgramEnd:
        """Return how the program ended (exit code None: it still runs), with its last printed line."""
        code = self._process.poll()
        if code is not None:
            self._reader.join(_LAST_WORDS_SECONDS)
        return ProgramEnd(code, _last_line(self._printed))

    def _read(self) -> None:
        output = self._process.stdout
        assert output is not None  # a pipe, as `PythonProgram` starts it
        rest = b""
        while chunk := os.read(output.fileno(), _KEPT):
            self._printed = (self._printed + chunk)[-_KEPT:]
            self.heard = time.monotonic()
            if self._hear is not None:
                *lines, rest = (rest + chunk).split(b"\n")
                self._tell_of(lines)
        self._tell_of([rest])
        output.close()

    def _tell_of(self, lines: Sequence[bytes]) -> None:
        """Call `hear` with lines; of a line that a progress bar wrote several times, with its last state."""
        for line in lines:
            if self._hear is not None:
                self._hear(line.rstrip(b"\r").rpartition(b"\r")[2].decode(errors="replace"))


def _last_line(printed: bytes) -> str:
    lines = [line.strip() for line in printed.decode(errors="replace").splitlines()]
    return next((line[:_SHOWN] for line in reversed(lines) if line), "")


def refusal(folder: Path) -> str | None:
    """Return why a program refused its task, from its `refused.json`; None if it did not refuse."""
    path = folder / "refused.json"
    if not path.exists():
        return None
    try:
        return str(json.loads(path.read_text(encoding="utf-8"))["sentence"])
    except (OSError, ValueError, KeyError, TypeError):
        return "it did not say why"
