"""Runs Snakemake and the command line in forks of one warm process, each in milliseconds.

Importing Snakemake and the model's libraries takes ten seconds; a fork of a process that has them
takes ten milliseconds. A request is what `python` would be given, with folder, environment and open
files; the answer is the pid of the fork, then its exit code (negative: the signal that killed it).

`--plain`: without the stand-in engine and its accidents, for tests of what is real.
"""

import contextlib
import faulthandler
import fcntl
import gc
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import struct
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

STAND_IN = "tests.histories.standin"
CLIENT = Path(__file__).with_name("client.py")
TIED_TO_PARENT = "evaluation.verification.preload"
"""Module whose import lets a process die with the thread that started it."""

MOST_FILES = 64
HIGH = 300
"""Where files are kept until each has the number that it had with the client."""

QUIET = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}

LIBRARIES = (
    "altair",
    "datasets",
    "encodings.idna",
    "pyarrow.parquet",
    "smart_open",
    "snakemake.cli",
    "torch.utils.serialization",
    "transformers",
)


def preload() -> None:
    """Imports all that a run may need, and lets the forks share it."""
    for name in LIBRARIES:
        importlib.import_module(name)
    transformers = sys.modules["transformers"]
    for name in ("LlamaForCausalLM", "PreTrainedTokenizerFast"):
        getattr(transformers, name)
    sys.modules["snakemake.cli"].get_argument_parser()  # imports the plugins
    for path in sorted(Path("evaluation").rglob("*.py")):
        name = ".".join(path.with_suffix("").parts)
        if name != TIED_TO_PARENT:
            importlib.import_module(name.removesuffix(".__init__"))


def serve(place: str) -> None:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(place)
    os.chmod(place, 0o777)  # other users of a history ask, too
    listener.listen(64)
    print("ready", flush=True)
    waiting = selectors.DefaultSelector()
    waiting.register(listener, selectors.EVENT_READ)
    waiting.register(0, selectors.EVENT_READ)  # closed when whoever started us has ended
    while True:
        for key, _ in waiting.select():
            if key.fd == 0:
                return
            if key.fileobj is listener:
                _begin(listener, waiting)
            elif waiting.get_map().get(key.fd) != key:
                continue  # fork and client ended at once: `_ended` has seen to both
            elif isinstance(key.data, int):
                _gone(key, waiting)
            else:
                _ended(key, waiting)


def _begin(listener: socket.socket, waiting: selectors.BaseSelector) -> None:
    link, _ = listener.accept()
    try:
        head, files, _, _ = socket.recv_fds(link, 4, MOST_FILES)
        request = json.loads(_receive(link, struct.unpack("!I", head)[0]))
    except (struct.error, ValueError, OSError):  # its client was killed as it began
        link.close()
        return
    pid = os.fork()
    if pid == 0:
        waiting.close()
        listener.close()
        link.close()
        _run(request, files)
    for descriptor in files:
        os.close(descriptor)
    with contextlib.suppress(OSError):  # its client was killed; `_gone` learns of it
        link.sendall(f"{pid}\n".encode())
    waiting.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, link))
    waiting.register(link, selectors.EVENT_READ, pid)


def _receive(link: socket.socket, size: int) -> bytes:
    content = b""
    while len(content) < size:
        content += link.recv(size - len(content)) or b"\0" * size
    return content


def _gone(key: selectors.SelectorKey, waiting: selectors.BaseSelector) -> None:
    """A client was killed: what runs for it is, too."""
    waiting.unregister(key.fileobj)
    os.kill(key.data, signal.SIGKILL)


def _ended(key: selectors.SelectorKey, waiting: selectors.BaseSelector) -> None:
    pid, link = key.data
    waiting.unregister(key.fileobj)
    os.close(key.fd)
    _, status = os.waitpid(pid, 0)
    if link in waiting.get_map():
        waiting.unregister(link)
    with contextlib.suppress(OSError):  # the client was killed, like its fork
        link.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
    link.close()


def _run(request: dict[str, Any], files: list[int]) -> None:
    """In the fork: becomes the process that was asked for; never returns."""
    code = 70
    try:
        _join(request["group"])
        _open_as(request.get("files", [0, 1, 2]), files)
        os.environ.clear()
        os.environ.update(request["environment"])
        tempfile.tempdir = None  # that of this process was looked up by a library
        os.chdir(request["folder"])
        asked = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
        sys.path += [path for path in asked if path not in sys.path]
        signal.signal(signal.SIGINT, signal.default_int_handler)
        faulthandler.register(signal.SIGUSR1, file=2, all_threads=True)
        sys.stdin = open(0) if _is_open(0) else None  # noqa: SIM115
        sys.stdout = open(1, "w")  # noqa: SIM115
        sys.stderr = open(2, "w", buffering=1)  # noqa: SIM115
        sys.executable = str(CLIENT)
        if STAND_IN in sys.modules:
            sys.modules[STAND_IN].begin()
        code = _become(request["arguments"])
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:  # noqa: BLE001 - as Python does at its top level
        traceback.print_exc()
        code = 1
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)


def _open_as(numbers: list[int], files: list[int]) -> None:
    """Gives files the numbers that they had with the client; what it had closed of 0, 1, 2 is closed."""
    high = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, HIGH) for descriptor in files]
    for descriptor in {0, 1, 2, *files}:
        os.close(descriptor)
    for descriptor, number in zip(high, numbers, strict=True):
        os.dup2(descriptor, number)
        os.close(descriptor)


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _join(group: int) -> None:
    """So that a signal to the client's group reaches this, too."""
    try:
        os.setpgid(0, group)
    except PermissionError:  # the client is of another session, as a watcher's Snakemake
        os.setsid()


def _become(arguments: list[str]) -> int:
    """`-m MODULE …`, `-c CODE …` or `FILE …`, as Python does it."""
    kind, *others = arguments
    if kind == "-m" and others[0] in ("evaluation", "snakemake"):
        module = f"{others[0]}.__main__" if others[0] == "evaluation" else "snakemake.cli"
        sys.argv = [f"{others[0]}", *others[1:]]
        return int(sys.modules[module].main(others[1:]) or 0)
    if kind == "-m":
        sys.argv = others
        runpy.run_module(others[0], run_name="__main__", alter_sys=True)
    elif kind == "-c":
        sys.argv = ["-c", *others[1:]]
        exec(others[0], {"__name__": "__main__"})
    else:
        sys.argv = arguments
        sys.path.insert(0, str(Path(kind).parent))
        runpy.run_path(kind, run_name="__main__")
    return 0


def main() -> None:
    os.environ.update(QUIET)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    preload()
    if "--plain" not in sys.argv:
        importlib.import_module(STAND_IN).install()
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve(sys.argv[1])


if __name__ == "__main__":
    main()
