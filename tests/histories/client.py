#!/usr/bin/env -S python3 -IS
"""Stands for `python`: has the warm server run what it is given, as if it ran here.

The exit code comes back. A signal to this process is passed on; if it is killed, so is what runs for it.
"""

import json
import os
import signal
import socket
import sys


def main():
    request = {"arguments": sys.argv[1:], "folder": os.getcwd(), "group": os.getpgrp()}
    request["environment"] = dict(os.environ)
    link = socket.socket(socket.AF_UNIX)
    link.connect(os.environ["HISTORIES_SOCKET"])
    socket.send_fds(link, [b"!"], [0, 1, 2])
    link.sendall(json.dumps(request).encode() + b"\n")
    answers = link.makefile()
    pid = int(answers.readline())
    for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(name, lambda number, frame: os.kill(pid, number))
    os.closerange(0, 3)  # a pipe ends when the fork closes it
    code = int(answers.readline() or 70)
    if code < 0:
        signal.signal(-code, signal.SIG_DFL) if -code != signal.SIGKILL else None
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    main()
