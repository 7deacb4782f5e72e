"""Runs Snakemake and the command line in forks of one warm process, each in milliseconds.

Importing Snakemake and the model's libraries takes ten seconds; a fork of a process that has them
takes ten milliseconds. A request is what `python` would be given, with folder, environment and the standard
files; the answer is the pid of the fork, then its exit code (negative: the signal that killed it).

`--stand-in`: with the stand-in engine and its accidents.
"""

import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

STAND_IN = "tests.histories.standin"
CLIENT = Path(__file__).with_name("client.py")
TIED_TO_PARENT = "evaluation.verification.preload"
"""Module whose import lets a process die with the thread that started it."""

QUIET = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}

LIBRARIES = (
    "altair datasets encodings.idna pyarrow.parquet smart_open snakemake.cli torch.utils.serialization "
    "transformers.models.llama.modeling_llama transformers.tokenization_utils_fast"
).split()


def preload() -> None:
    """Imports all that a run may need, and lets the forks share it."""
    for name in LIBRARIES:
        importlib.import_module(name)
    sys.modules["snakemake.cli"].get_argument_parser()  # imports the plugins
    for path in sorted(Path("evaluation").rglob("*.py")):
        name = ".".join(path.with_suffix("").parts)
        if name != TIED_TO_PARENT:
            importlib.import_module(name.removesuffix(".__init__"))


def serve(place: str) -> None:
    """Until whoever started this has closed its standard input."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(place)
    listener.listen(64)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the attendants
    print("ready", flush=True)
    while listener in select.select([listener, 0], [], [])[0]:
        link, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            with contextlib.suppress(ValueError, OSError):  # the client was killed
                attend(link)
            os._exit(0)
        link.close()


def attend(link: socket.socket) -> None:
    """In a fork: starts what a client asks for, and tells it how that ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _, files, _, _ = socket.recv_fds(link, 1, 3)
    request = json.loads(link.makefile().readline())
    pid = os.fork()
    if pid == 0:
        link.close()
        become(request, files)
    for descriptor in files:
        os.close(descriptor)
    link.sendall(f"{pid}\n".encode())
    ended = os.pidfd_open(pid)
    if ended not in select.select([ended, link], [], [])[0]:  # its client was killed
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    link.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())


def become(request: dict[str, Any], files: list[int]) -> None:
    """In a fork of that: becomes the process that was asked for; never returns."""
    code = 70
    try:
        with contextlib.suppress(PermissionError):  # the client is of another session
            os.setpgid(0, request["group"])  # a signal to the client's group reaches this, too
        for number, descriptor in enumerate(files):
            os.dup2(descriptor, number)
            os.close(descriptor)
        os.environ.clear()
        os.environ.update(request["environment"])
        tempfile.tempdir = None  # that of this process was looked up by a library
        os.chdir(request["folder"])
        asked = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
        sys.path += [path for path in asked if path not in sys.path]
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w", buffering=1)  # noqa: SIM115
        sys.executable = str(CLIENT)
        if STAND_IN in sys.modules:
            sys.modules[STAND_IN].begin()
        code = _run(request["arguments"])
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


def _run(arguments: list[str]) -> int:
    """`-m MODULE …`, `-c CODE …` or `FILE …`, as Python does it."""
    kind, *others = arguments
    if kind == "-m" and others[0] in ("evaluation", "snakemake"):
        module = f"{others[0]}.__main__" if others[0] == "evaluation" else "snakemake.cli"
        sys.argv = others
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
    if "--stand-in" in sys.argv:
        importlib.import_module(STAND_IN).install()
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve(sys.argv[1])


if __name__ == "__main__":
    main()
