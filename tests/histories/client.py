#!/usr/bin/env -S python3 -IS
"""Stands for `python` in jobs: has the warm server run what it is given, as if it ran here.

Its arguments, folder, environment and open files go to the server; the exit code comes back. A
signal to this process is passed on; if it is killed, so is what runs for it.
"""

import os
import signal
import socket
import struct
import sys


def ask(place, request, files):
    """Connects to the server, which answers with the pid of a fork, and then with its exit code."""
    import json

    link = socket.socket(socket.AF_UNIX)
    link.connect(place)
    content = json.dumps(request).encode()
    socket.send_fds(link, [struct.pack("!I", len(content))], files)
    link.sendall(content)
    return link


def main():
    request = {"arguments": sys.argv[1:], "folder": os.getcwd(), "environment": dict(os.environ)}
    link = ask(os.environ["HISTORIES_SOCKET"], {**request, "group": os.getpgrp()}, [0, 1, 2])
    answers = link.makefile()
    pid = int(answers.readline())
    for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(name, lambda number, frame: os.kill(pid, number))
    for descriptor in (0, 1, 2):  # a pipe ends when the worker closes it
        os.close(descriptor)
    code = int(answers.readline() or 70)
    if code < 0:
        signal.signal(-code, signal.SIG_DFL) if -code != signal.SIGKILL else None
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    main()
