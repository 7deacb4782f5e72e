"""GPUs of a job's own: jobs at once on a machine without Slurm see all GPUs, and none may share one.

A job locks a file for each GPU that it takes. The lock ends with its process, however that ends.
"""

import fcntl
import logging
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from evaluation.scoring.visible_gpus import VISIBLE, visible_names

log = logging.getLogger(__name__)

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
