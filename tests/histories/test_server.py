"""The warm server lives on, however a client and what runs for it end."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from tests.histories.runner import ROOT, asked
from tests.histories.warm import run_python, warm_server


def test_a_client_that_ends_with_its_fork(tmp_path: Path) -> None:
    arguments = ["-c", "import time; time.sleep(0.5)"]
    with open(os.devnull, "r+b") as nothing, contextlib.ExitStack() as client:
        request = asked(warm_server().place, ROOT, arguments, {}, nothing, nothing)
        fork, _ = client.enter_context(request)
        with _stopped(int(_stat(fork)[3])):  # so that it learns of both at once
            while _stat(fork)[2] != "Z":
                time.sleep(0.01)
            client.close()
    assert run_python(["-c", "print('there')"], tmp_path).stdout == "there\n"


def _stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().split()


@contextlib.contextmanager
def _stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
