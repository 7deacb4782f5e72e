"""Starts the warm server, and runs Snakemake and the command line in it."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tests.histories.client import ask

ROOT = Path(__file__).resolve().parents[2]
SNAKEFILE = ROOT / "workflow" / "Snakefile"
PATIENCE = 600.0


@dataclass(frozen=True)
class Done:
    """How a command ended: its exit code (negative: killed by that signal), and what it said."""

    code: int
    said: str
    seconds: float


@dataclass(frozen=True)
class Server:
    """A running server."""

    place: Path

    def snakemake(
        self,
        folder: Path,
        *arguments: str,
        config: str = "",
        extra: Mapping[str, str] | None = None,
    ) -> Done:
        """`snakemake …` as a user runs it, with that configuration or the folder's own."""
        config = config or str(folder / "config.yaml")
        command = ["-m", "snakemake", *arguments, "--configfile", config]
        command += ["--cores", "2", "--keep-going", "--rerun-incomplete", "--latency-wait", "0"]
        return self.run(folder, [*command, "-s", str(SNAKEFILE)], extra)

    def run(
        self,
        folder: Path,
        arguments: Sequence[str],
        extra: Mapping[str, str] | None = None,
        *,
        killed_after: float | None = None,
    ) -> Done:
        """Runs `python <arguments>`; what is left of its process group is killed at the end.

        After `killed_after` seconds all of it is killed, as by `kill -9`.
        """
        start = time.perf_counter()
        with tempfile.TemporaryFile() as said:
            code = self.call(folder, arguments, extra or {}, (said, said), killed_after)
            said.seek(0)
            text = said.read().decode(errors="replace")
        return Done(code, text, time.perf_counter() - start)

    def call(
        self,
        folder: Path,
        arguments: Sequence[str],
        extra: Mapping[str, str],
        output: tuple[IO[bytes], IO[bytes]],
        killed_after: float | None = None,
    ) -> int:
        """The exit code of `run`, whose standard output and error are written to two files."""
        environment = {**os.environ, **extra, "HISTORIES_SOCKET": str(self.place)}
        environment |= {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        request = {"arguments": list(arguments), "folder": str(folder), "group": 0}
        with open(os.devnull, "rb") as nothing:
            files = [file.fileno() for file in (nothing, *output)]
            link = ask(str(self.place), {**request, "environment": environment}, files)
        with link, link.makefile() as answers:
            pid = int(answers.readline())
            with _after(PATIENCE, lambda: _end(pid)), _after(killed_after, lambda: _kill(pid)):
                code = int(answers.readline())
        _kill(pid)
        return code


@contextlib.contextmanager
def _after(seconds: float | None, do: Callable[[], None]) -> Iterator[None]:
    """What is done if the block takes so many seconds; None: never."""
    timer = threading.Timer(seconds or 0.0, do)
    if seconds is not None:
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _end(group: int) -> None:
    """Kills processes that hang, after each has reported where it is."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            is_fork = b"histories.server" in (process / "cmdline").read_bytes()
            if is_fork and os.getpgid(int(process.name)) == group:
                os.kill(int(process.name), signal.SIGUSR1)
    time.sleep(1)
    _kill(group)


def _kill(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


@contextlib.contextmanager
def server(*options: str) -> Iterator[Server]:
    """A server that ends with the block; `options` are those of its command line."""
    with tempfile.TemporaryDirectory(prefix="histories-") as folder:
        os.chmod(folder, 0o711)
        place = Path(folder) / "socket"
        command = [sys.executable, "-W", "ignore", "-m", "tests.histories.server", str(place)]
        command += options
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with subprocess.Popen(command, cwd=ROOT, text=True, **pipes) as process:
            if process.stdout is None or process.stdout.readline() != "ready\n":
                raise RuntimeError(f"the server ended as it began: exit code {process.wait()}")
            yield Server(place)  # it ends when the block does, as its stdin is closed then
