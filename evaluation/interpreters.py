"""A program run by another Python, in an environment of its own, and talked to through files."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parents[1]
"""Where the other interpreter finds the programs."""

_POLL = 0.1
_TOLD = 300
"""Characters of a program's last words that an error repeats."""


@dataclass(frozen=True)
class Ended:
    """How a program ended: its exit code, None where it was stopped, and its last words."""

    code: int | None
    said: str

    def __str__(self) -> str:
        how = "was stopped" if self.code is None else f"ended with code {self.code}"
        return f"{how}: {self.said}" if self.said else how


class NotStarted(Exception):
    """The other Python cannot be run; its text is the system's reason."""


def is_python(path: Path) -> bool:
    """Whether there is something that can be run."""
    return os.access(path, os.X_OK) and not path.is_dir()


@dataclass(frozen=True)
class Program:
    """A module of this project with its arguments, for another Python."""

    python: Path
    module: str
    arguments: Sequence[str]
    folder: Path
    """Where it is started; what it prints goes to `log.txt` there."""
    variables: Mapping[str, str]
    """Set beside ours."""

    def run(self, keep_on: Callable[[], bool]) -> Ended:
        """Runs it until it ends, or `keep_on` says that it has taken too long."""
        with self.started() as process:
            while process.poll() is None and keep_on():
                time.sleep(_POLL)
            return self.ended(process)

    def ended(self, process: "subprocess.Popen[bytes]") -> Ended:
        return Ended(process.poll(), _last_words(self.folder / "log.txt"))

    @contextmanager
    def started(self) -> "Iterator[subprocess.Popen[bytes]]":
        """The process, which ends with all that it started when the block does.

        Raises NotStarted if its Python cannot be run.
        """
        with open(self.folder / "log.txt", "wb") as output:
            process = self._start(output)
            try:
                yield process
            finally:
                with suppress(ProcessLookupError):  # nothing of it is left
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def _start(self, output: IO[bytes]) -> "subprocess.Popen[bytes]":
        try:
            return subprocess.Popen(
                [str(self.python), "-m", self.module, *self.arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**environment(), **self.variables},
                cwd=self.folder,
                start_new_session=True,
            )
        except OSError as error:
            raise NotStarted(error.strerror) from None


def environment() -> dict[str, str]:
    """Ours, but for what would lead another Python to our packages."""
    given = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV"))}
    return given | {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0"}


def _last_words(log: Path) -> str:
    text = log.read_text(encoding="utf-8", errors="replace")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:_TOLD] if lines else ""
