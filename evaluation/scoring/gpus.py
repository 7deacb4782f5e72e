"""The GPUs that this process may use, by name, who else is in their memory, and those of a job's own.

Jobs at once on a machine without Slurm see all GPUs, and none may share one: a job locks a file for each
GPU that it takes. The lock ends with its process, however that ends.
"""

import fcntl
import logging
import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import IO

log = logging.getLogger(__name__)

VISIBLE = "CUDA_VISIBLE_DEVICES"

_NONE = ("", "-1", "NoDevFiles")
"""Entries of CUDA_VISIBLE_DEVICES from which on there is no GPU; Slurm writes the last one."""

DRIVERS = ("/dev/nvidiactl", "/dev/kfd")
"""Files of which one exists where the driver of a GPU is loaded, so that no GPU is a simulated one."""

_SLURM = ("SLURM_JOB_GPUS", "SLURM_STEP_GPUS")
_ASKED = ("--query-compute-apps=pid,used_memory,process_name", "--format=csv,noheader")
_PATIENCE = 30.0
"""Seconds after which nvidia-smi is given up: a dead GPU makes it hang."""


def are_here() -> bool:
    """Return whether this machine has GPUs, also such as PyTorch cannot use."""
    return any(map(os.path.exists, DRIVERS))


def are_given() -> bool:
    """Return whether Slurm or the user gave this process a GPU."""
    if (listed := os.environ.get(VISIBLE)) is not None:
        return bool(_named_in(listed))
    return any(map(os.environ.get, _SLURM))


def visible_names() -> list[str]:
    """Return the names of all GPUs that this process sees, as CUDA_VISIBLE_DEVICES writes them."""
    if (listed := os.environ.get(VISIBLE)) is not None:
        return _named_in(listed)
    import torch

    return list(map(str, range(torch.cuda.device_count())))


def _named_in(listed: str) -> list[str]:
    """Return the names of GPUs in a value of CUDA_VISIBLE_DEVICES, as CUDA reads it, each once."""
    names = takewhile(lambda name: name not in _NONE, map(str.strip, listed.split(",")))
    return list(dict.fromkeys(names))


def holders(gpus: Sequence[str]) -> str | None:
    """Return the other processes in GPUs' memory, as nvidia-smi names them; None if it names none."""
    command = ("nvidia-smi", f"--id={','.join(gpus)}", *_ASKED)
    try:
        done = subprocess.run(command, capture_output=True, check=True, timeout=_PATIENCE)
    except (OSError, subprocess.SubprocessError):
        return None
    rows = [line.split(", ", 2) for line in done.stdout.decode(errors="replace").splitlines()]
    others = [row for row in rows if len(row) == 3 and row[0] != str(os.getpid())]
    found = [f"process {pid} ({name}, {size})" for pid, size, name in others]
    return " and ".join(found) or None


_HELD: list[IO[str]] = []
"""Open files with the locks of this process."""


def take_gpus(most: int) -> None:
    """Leave at most this many GPUs, none of another job, in CUDA_VISIBLE_DEVICES; wait until one is free."""
    names = visible_names()
    if not names:
        return
    while not (own := _lock(names, most)):
        log.info("all of the GPUs %s are used by other jobs: waiting", ", ".join(names))
        time.sleep(2.0)
    os.environ[VISIBLE] = ",".join(own)


def _lock(names: Sequence[str], most: int) -> list[str]:
    """Lock free GPUs, and return their names."""
    folder = Path(tempfile.gettempdir()) / f"evaluation-gpus-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    own: list[str] = []
    for name in names:
        # Slurm may number the GPUs of each of its jobs from 0 on; no two of those share one.
        file = open(folder / f"{os.environ.get('SLURM_JOB_ID', '')}-{name}", "a")  # noqa: SIM115
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
        else:
            own.append(name)
            _HELD.append(file)
        if len(own) == most:
            break
    return own
