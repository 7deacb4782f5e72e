"""The warm server lives on, however a client and what runs for it end."""

import contextlib
import json
import os
import signal
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

from tests.histories.runner import ROOT
from tests.histories.warm import run_python, warm_server


def test_a_client_that_ends_with_its_fork(tmp_path: Path) -> None:
    link, fork = _ask("import time; time.sleep(0.5)")
    server = int(_stat(fork)[3])
    with _stopped(server):  # so that it learns of both at once
        while _stat(fork)[2] != "Z":
            time.sleep(0.01)
        link.close()
    assert run_python(["-c", "print('there')"], tmp_path).stdout == "there\n"


def _ask(program: str) -> tuple[socket.socket, int]:
    """A connection on which a program was asked for, and the process that runs it."""
    request = {"arguments": ["-c", program], "folder": str(ROOT), "environment": {}, "group": 0}
    content = json.dumps(request).encode()
    link = socket.socket(socket.AF_UNIX)
    link.connect(str(warm_server().place))
    with open(os.devnull, "r+b") as nothing:
        socket.send_fds(link, [struct.pack("!I", len(content))], [nothing.fileno()] * 3)
    link.sendall(content)
    return link, int(link.recv(16))


def _stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().split()


@contextlib.contextmanager
def _stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
