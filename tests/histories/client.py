#!/usr/bin/env -S python3 -IS
"""Stands for `python` in jobs: has the warm server run what it is given, as if it ran here.

Its arguments, folder, environment and open files go to the server, which gives each the number that it
has here; the exit code comes back. A signal to this process is passed on; if it is killed, so is what
runs for it.
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


def open_files():
    """Numbers of the files that whoever started this left open: the standard ones, pipes of a shell."""
    numbers = []
    for number in sorted(map(int, os.listdir("/proc/self/fd"))):
        try:
            os.fstat(number)
        except OSError:  # the listing's own, which is closed
            continue
        numbers.append(number)
    return numbers


def main():
    files = open_files()
    request = {"arguments": sys.argv[1:], "folder": os.getcwd(), "environment": dict(os.environ)}
    request |= {"group": os.getpgrp(), "files": files}
    link = ask(os.environ["HISTORIES_SOCKET"], request, files)
    answers = link.makefile()
    pid = int(answers.readline())
    for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(name, lambda number, frame: os.kill(pid, number))
    for descriptor in files:  # a pipe ends when the worker closes it
        os.close(descriptor)
    code = int(answers.readline() or 70)
    if code < 0:
        signal.signal(-code, signal.SIG_DFL) if -code != signal.SIGKILL else None
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    main()
